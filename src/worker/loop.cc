// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/loop.h"

#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "worker/completion_batch.h"
#include "worker/last_words.h"
#include "worker/memory_use.h"
#include "worker/row_probe.h"
#include "worker/side_file.h"
#include "worker/warm_up.h"
#include "worker/widths.h"

namespace tensord::worker {
namespace {

constexpr size_t kOwnSegmentsMax = 2;  // That ride along with one record.

using Access = channel::MappedSegment::Access;

// Maps the next descriptor that came along, if it is wanted.
absl::Status MapOwn(bool wanted, Access access, std::vector<base::UniqueFd>* descriptors,
                    std::unique_ptr<channel::MappedSegment>* out) {
  if (!wanted) return absl::OkStatus();
  if (descriptors->empty()) {
    return absl::InvalidArgumentError("a record's own segment did not come with it");
  }
  const base::UniqueFd fd = std::move(descriptors->front());
  descriptors->erase(descriptors->begin());
  ASSIGN_OR_RETURN(channel::MappedSegment segment, channel::MappedSegment::Map(fd.get(), access));
  *out = std::make_unique<channel::MappedSegment>(std::move(segment));
  return absl::OkStatus();
}

uint64_t Microseconds(absl::Duration duration) {
  return static_cast<uint64_t>(absl::ToInt64Microseconds(duration));
}

int ExecutorsOf(const channel::LoadRecord& record) {
  return static_cast<int>(std::clamp(record.executors, 1u, limits::kExecutorsMax));
}

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "tensord-worker: %s\n", std::string(base::Message(status)).c_str());
}

}  // namespace

Loop::Loop(Ends ends, engine::Engine* engine, Confinement* confinement)
    : channel_(std::move(ends.channel)),
      incarnation_(ends.incarnation),
      first_segments_(
          std::make_shared<Segments>(Segments{std::move(ends.request), std::move(ends.response)})),
      engine_(engine),
      confinement_(confinement),
      clock_(base::MonotonicClock()) {}

Loop::~Loop() {
  shutdown(channel_.fd(), SHUT_RDWR);
  if (loader_.joinable()) loader_.join();
}

ExitCode Loop::Serve() {
  if (!Send(channel::HelloRecord{.pid = getpid()}).ok()) return ExitCode::kDone;
  const absl::StatusOr<channel::Packet> packet = channel_.Receive(limits::kRecordBytesMax, 0);
  if (absl::IsUnavailable(packet.status())) return ExitCode::kDone;
  absl::StatusOr<channel::ToWorker> record =
      packet.ok() ? channel::DecodeToWorker(packet->bytes, incarnation_) : packet.status();
  if (record.ok() && !std::holds_alternative<channel::LoadRecord>(*record)) {
    record = absl::InvalidArgumentError("the first record is no load record");
  }
  if (!record.ok()) {
    Complain(record.status());
    return ExitCode::kProtocolBroken;
  }
  auto& load = std::get<channel::LoadRecord>(*record);
  // What ps and top show; the kernel keeps the first 15 bytes.
  prctl(PR_SET_NAME, base::Cat(load.model, "/", load.version).c_str(), 0, 0, 0);
  confined_ = confinement_->BeforeLoad(load);
  loader_ = std::thread([this, load = std::move(load)] { LoadAndExecute(load); });
  return Watch();
}

void Loop::LoadAndExecute(const channel::LoadRecord& record) {
  const SignalStack stack;
  const absl::Status status = Load(record);
  if (!status.ok()) {
    if (!Send(channel::LoadFailedRecord{status}).ok()) Complain(status);
    return Finish(ExitCode::kLoadFailed);
  }
  const int count = ExecutorsOf(record);
  executors_left_ = count;
  // With two widths this thread has made runs of both, which an executor must not (wide_thread.h).
  for (int i = two_widths_ ? 0 : 1; i < count; ++i) {
    executors_.emplace_back([this] {
      const SignalStack own_stack;
      Execute();
    });
  }
  if (!two_widths_) Execute();
  for (std::thread& executor : executors_) executor.join();
}

absl::Status Loop::Load(const channel::LoadRecord& record) {
  RETURN_IF_ERROR(confined_.status);
  const absl::Time begun = clock_.Now();
  engine::ModelInfo info;
  if (record.read_batching_parameters) {
    ASSIGN_OR_RETURN(info.batching_parameters,
                     ReadSideFile(record.directory, engine::kBatchingParametersFile));
  }
  ASSIGN_OR_RETURN(model_, engine_->Load({.directory = record.directory,
                                          .tags = record.tags,
                                          .session_config = record.session_config,
                                          .op_libraries = record.op_libraries,
                                          .runs_in_caller = record.runs_in_caller,
                                          .runs_at_once = ExecutorsOf(record)}));
  runner_ = std::make_unique<Runner>(model_.get(), first_segments_);
  model_->Describe(&info);
  const absl::Time loaded = clock_.Now();
  info.load_microseconds = Microseconds(loaded - begun);
  if (record.synthetic_warm_up && model_->stateful_reason().empty()) {
    WarmUpReport report = WarmUp(*model_, record.warm_up_rows, clock_);
    RETURN_IF_ERROR(report.broken);
    info.warm_up_microseconds = Microseconds(clock_.Now() - loaded);
    info.warm_up_runs = report.runs;
    if (report.runs > 0) info.warm_up_source = "zeros";
    info.run_times = std::move(report.run_times);
    std::ranges::move(report.warnings, std::back_inserter(info.warnings));
    warm_up_inputs_ = std::move(report.kept);
  }
  ProbeRows(record.synthetic_warm_up, &info);
  // What loading and optimising left behind: up to half of a model's memory.
  malloc_trim(0);
  if (!record.narrow_session_config.empty() && model_->stateful_reason().empty()) {
    WidthReport widths =
        ChooseWidths(*model_, {.narrow_session_config = record.narrow_session_config,
                               .private_bytes = PrivateBytes(),
                               .private_bytes_max = record.narrow_bytes_max});
    std::ranges::move(widths.warnings, std::back_inserter(info.warnings));
    std::ranges::move(widths.kept, std::back_inserter(warm_up_inputs_));
    info.two_widths = two_widths_ = widths.two;
    malloc_trim(0);
  }
  info.sandbox = confined_.lines;
  std::ranges::move(confinement_->AfterLoad(), std::back_inserter(info.sandbox));
  info.sandbox_grade = confined_.grade;
  info.sandbox_stage = confined_.confined ? 1 : 0;
  info.private_bytes = PrivateBytes();
  return SendDescription(std::move(info));
}

// Requests share runs of their own accord only where that was found to change no answer.
void Loop::ProbeRows(bool allowed, engine::ModelInfo* info) {
  if (!model_->stateful_reason().empty()) return;  // Never shared.
  for (size_t i = 0; i < model_->signatures().size(); ++i) {
    const std::string& name = model_->signatures()[i].name;
    if (name.starts_with("__saved_model_") || info->alone.contains(name)) continue;
    std::string why = allowed ? WhyRowsDepend(*model_, i, &warm_up_inputs_)
                              : "there was no warm-up with made-up inputs to find out";
    if (!why.empty()) info->alone[name] = std::move(why);
  }
}

absl::Status Loop::SendDescription(engine::ModelInfo info) {
  const std::string bytes = engine::Serialize(info);
  const absl::StatusOr<std::span<std::byte>> out = first_segments_->response.Write(0, bytes.size());
  if (!out.ok()) {
    return absl::ResourceExhaustedError(base::Cat("the model's description of ", bytes.size(),
                                                  " bytes does not fit the response segment of ",
                                                  first_segments_->response.size()));
  }
  std::memcpy(out->data(), bytes.data(), bytes.size());
  first_segments_.reset();
  return Send(channel::LoadedRecord{.info_bytes = bytes.size()});
}

void Loop::Execute() {
  while (exit_code_ < 0) {
    absl::StatusOr<channel::Packet> packet =
        channel_.Receive(limits::kRecordBytesMax, kOwnSegmentsMax);
    const absl::Status status = packet.ok() ? Handle(*std::move(packet)) : packet.status();
    // The end of the channel: the front closed it, or a StopRecord ended receiving.
    if (absl::IsUnavailable(status)) break;
    if (!status.ok()) {
      Complain(status);
      return Finish(ExitCode::kProtocolBroken);
    }
  }
  if (executors_left_.fetch_sub(1) == 1) Finish(ExitCode::kDone);
}

void Loop::Finish(ExitCode code) {
  int unknown = -1;
  exit_code_.compare_exchange_strong(unknown, static_cast<int>(code));
  wake_.Set();
}

// UNAVAILABLE when the front is gone; any other error is a record that the front must not send.
absl::Status Loop::Handle(channel::Packet packet) {
  ASSIGN_OR_RETURN(const channel::ToWorker record,
                   channel::DecodeToWorker(packet.bytes, incarnation_));
  if (const auto* runs = std::get_if<channel::RunRecord>(&record)) {
    return HandleRuns(*runs, &packet.descriptors);
  }
  if (const auto* collect = std::get_if<channel::CollectRecord>(&record)) {
    OwnSegments own;
    RETURN_IF_ERROR(MapOwn(collect->response_bytes > 0, Access::kReadWrite, &packet.descriptors,
                           &own.response));
    std::optional<channel::Completion> completion = runner_->Collect(*collect, own.response.get());
    if (!completion.has_value()) return absl::OkStatus();
    return Send(channel::CompletionRecord{{*std::move(completion)}});
  }
  if (std::holds_alternative<channel::SegmentsRecord>(record)) {
    return TakeSegments(&packet.descriptors);
  }
  if (std::holds_alternative<channel::SealRecord>(record)) return Send(confinement_->Seal());
  if (std::holds_alternative<channel::StopRecord>(record)) {
    // Wakes every executor that waits, once the records before this one are taken.
    shutdown(channel_.fd(), SHUT_RD);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("a second load record");
}

absl::Status Loop::TakeSegments(Descriptors* descriptors) {
  std::unique_ptr<channel::MappedSegment> request;
  std::unique_ptr<channel::MappedSegment> response;
  RETURN_IF_ERROR(MapOwn(true, Access::kRead, descriptors, &request));
  RETURN_IF_ERROR(MapOwn(true, Access::kReadWrite, descriptors, &response));
  runner_->ReplaceSegments(
      std::make_shared<Segments>(Segments{std::move(*request), std::move(*response)}));
  return Send(channel::SegmentsTakenRecord{});
}

// Not inlined: GCC 12 takes other alternatives of the record's variant for uninitialized runs.
[[gnu::noinline]] absl::Status Loop::HandleRuns(const channel::RunRecord& record,
                                                Descriptors* descriptors) {
  OwnSegments own;
  const channel::Run& first = record.runs.front();
  RETURN_IF_ERROR(MapOwn(first.own_request_segment, Access::kRead, descriptors, &own.request));
  RETURN_IF_ERROR(
      MapOwn(first.own_response_segment, Access::kReadWrite, descriptors, &own.response));
  CompletionBatch batch;
  for (size_t i = 0; i < record.runs.size(); ++i) {
    const channel::Run& run = record.runs[i];
    channel::Completion completion = MakeRun(run, &own);
    const auto run_time = absl::Nanoseconds(static_cast<int64_t>(completion.run_nanoseconds));
    if (!batch.empty() && batch.FullFor(completion)) RETURN_IF_ERROR(Send(batch.Take()));
    const absl::Time now = clock_.Now();
    batch.Add(std::move(completion), now);
    const bool same_follows =
        i + 1 < record.runs.size() && record.runs[i + 1].signature == run.signature;
    if (batch.Due(now, run_time, same_follows)) RETURN_IF_ERROR(Send(batch.Take()));
  }
  return absl::OkStatus();
}

channel::Completion Loop::MakeRun(const channel::Run& run, OwnSegments* own) {
  runs_begun_.fetch_add(1);
  // Both sides of this pair are sequentially consistent: either the watch sees the run, or this
  // sees that the watch went to sleep.
  if (watch_sleeps_.exchange(false)) wake_.Set();
  channel::Completion completion = runner_->Make(run, own);
  runs_done_.fetch_add(1);
  return completion;
}

absl::Status Loop::Send(const channel::ToFront& record) const {
  return channel_.Send(channel::Encode(incarnation_, record));
}

// ---- The watch -------------------------------------------------------------------------------

ExitCode Loop::Watch() {
  uint64_t begun_before = 0;
  while (true) {
    const int timeout = WatchTimeout(&begun_before);
    // No events of the channel are asked for: its hang-up is told without.
    std::array<pollfd, 2> polled = {pollfd{.fd = wake_.fd(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = channel_.fd(), .events = 0, .revents = 0}};
    const int ready = poll(polled.data(), polled.size(), timeout);
    if (exit_code_ >= 0) return static_cast<ExitCode>(exit_code_.load());
    if ((polled[1].revents & (POLLHUP | POLLERR)) != 0) return ExitCode::kDone;
    if (polled[0].revents != 0) wake_.Clear();
    if (ready == 0 && runs_begun_ != runs_done_) SendHeartbeat();
  }
}

// How long the watch may sleep: one beat while there is work, or was since it last asked. So a
// stream of short runs does not wake it each time.
int Loop::WatchTimeout(uint64_t* begun_before) {
  const auto beat = static_cast<int>(absl::ToInt64Milliseconds(limits::kHeartbeatEvery));
  const uint64_t begun = runs_begun_;
  if (begun != std::exchange(*begun_before, begun) || begun != runs_done_) return beat;
  // The first runs, which may have been a warm-up, left behind what optimising them took.
  if (begun > 0 && !std::exchange(trimmed_, true)) malloc_trim(0);
  watch_sleeps_ = true;
  if (runs_begun_ == begun) return -1;
  watch_sleeps_ = false;
  return beat;
}

void Loop::SendHeartbeat() const {
  const std::string bytes =
      channel::Encode(incarnation_, channel::HeartbeatRecord{.runs_done = runs_done_});
  // Never blocks: a full queue is the front's to empty, and this thread must see it close.
  send(channel_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace tensord::worker
