// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/worker_handle.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/signature_def.h"
#include "fleet/death.h"

namespace tensord::fleet {
namespace {

// Until a signature has answered once, its outputs get this part of the standard segment.
constexpr uint64_t kFirstGrantBytes = 64 * 1024;
// Then the largest seen, and a little more: batches grow.
constexpr double kGrantSlack = 1.25;
constexpr int kRecordsAtOnce = 64;  // Then other descriptors of the loop get their turn.

}  // namespace

WorkerHandle::WorkerHandle(loop::EventLoop& loop, WorkerParts parts, WorkerObserver* observer,
                           absl::AnyInvocable<void()> kill)
    : loop_(loop),
      parts_(std::move(parts)),
      observer_(observer),
      kill_(std::move(kill)),
      started_(loop.Now()),
      last_heard_(loop.Now()),
      request_(std::make_shared<RequestArea>(std::move(parts_.request))),
      response_slots_(std::make_unique<channel::SlotAllocator>(parts_.response.size())),
      first_sizes_(Sizes()),
      demand_(first_sizes_, 2 * static_cast<int>(parts_.load.executors), loop.Now()),
      self_(std::make_shared<WorkerHandle*>(this)) {
  watch_ = loop_.Add(parts_.channel.fd(), EPOLLIN, [this](uint32_t) { OnReadable(); });
  KeepWatch();
}

WorkerHandle::~WorkerHandle() {
  *self_ = nullptr;
  loop_.Cancel(watchdog_);
  loop_.Cancel(demand_timer_);
  if (state_ != State::kEnded) kill_();
  FailRuns(absl::UnavailableError(base::Cat(Name(), " was given up")), Cause::kOurs);
}

std::string WorkerHandle::Name() const {
  return base::Cat("the worker of model ", parts_.key.model, ", version ", parts_.key.version);
}

int WorkerHandle::Free() const {
  if (state_ != State::kReady || stop_asked_ || renewal_.has_value()) return 0;
  // One running and one staged for each executor.
  const int credits = 2 * static_cast<int>(parts_.load.executors);
  return std::max(0, credits - static_cast<int>(out_.size()));
}

void WorkerHandle::Submit(RunSpec spec, RunDone done) {
  TENSORD_CHECK(Free() > 0);
  if (out_.empty()) last_heard_ = loop_.Now();
  OutRun out;
  out.signature = spec.signature;
  out.more_signatures = spec.more_signatures;
  out.done = std::move(done);
  out.deadline = spec.deadline;
  out.kill_at = std::min(spec.deadline + limits::kRunOverrun, spec.kill_at);
  out.name = spec.name;
  channel::Run run;
  run.id = ++last_run_;
  run.signature = static_cast<uint32_t>(spec.signature);
  for (const int more : spec.more_signatures) {
    run.more_signatures.push_back(static_cast<uint32_t>(more));
  }
  absl::StatusOr<PackedRun> plan = PlaceRequest(spec, &out, &run);
  absl::Status placed = plan.status();
  if (placed.ok()) placed = PlaceResponse(&out, &run);
  const auto at = out_.emplace(run.id, std::move(out)).first;
  KeepWatch();
  if (!placed.ok()) {
    loop_.Defer([self = self_, id = run.id, placed] {
      if (*self != nullptr) (*self)->Finish(id, {.status = placed}, false);
    });
    return;
  }
  OutRun& placed_out = at->second;
  const std::span<std::byte> region =
      placed_out.own_request ? placed_out.own_request->Bytes(0, plan->bytes)
                             : request_->Bytes(placed_out.request_slot.offset(), plan->bytes);
  Pack(spec, *plan, region);
  copied_bytes_ += plan->bytes;
  const bool own = placed_out.own_request || placed_out.own_response;
  demand_.Note(plan->bytes + plan->received_bytes, placed_out.region.bytes, own, loop_.Now());
  if (own) {
    SendAlone(run);
    return WatchDemand();
  }
  pending_.push_back(std::move(run));
  FlushSoon();
}

ReceivePlace WorkerHandle::LeaseForReceive(uint64_t bytes) {
  // Those that are received run soon; what would have to wait may as well be joined with others,
  // for which it is copied anyway.
  const size_t busy = out_.size() + request_->receiving();
  if (Free() == 0 || busy >= parts_.load.executors) return {};
  std::shared_ptr<RequestArea::Lease> lease = request_->TakeLease(bytes);
  if (lease == nullptr) return {};
  const std::span<std::byte> memory = lease->memory().first(bytes);
  return {.memory = memory, .lease = std::move(lease)};
}

// Which inputs lie in the segment already, by their offsets there. All of one request: of one
// lease.
std::vector<std::optional<uint64_t>> WorkerHandle::FindReceived(const RunSpec& spec,
                                                                OutRun* out) const {
  if (!request_->leased()) return {};
  std::vector<std::optional<uint64_t>> found(spec.inputs.size());
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const std::vector<tensor::TensorView>& pieces = spec.inputs[i];
    if (pieces.size() != 1 || pieces.front().dtype == tensor::DType::kString) continue;
    const std::span<const std::byte> bytes = pieces.front().bytes;
    std::shared_ptr<RequestArea::Lease> lease = request_->FindLease(bytes);
    if (lease == nullptr || (out->received != nullptr && out->received != lease)) continue;
    const uint64_t offset = request_->OffsetOf(bytes);
    if (AlignTensor(offset) != offset) continue;
    found[i] = offset;
    out->received = std::move(lease);
  }
  return found;
}

// Where the inputs go, or are.
absl::StatusOr<PackedRun> WorkerHandle::PlaceRequest(const RunSpec& spec, OutRun* out,
                                                     channel::Run* run) {
  ASSIGN_OR_RETURN(PackedRun plan, LayOut(spec, FindReceived(spec, out)));
  std::optional<channel::Slot> slot;
  if (plan.bytes > 0 || out->received == nullptr) {
    slot = request_->Take(plan.bytes);
    if (!slot.has_value() && out->received != nullptr) {
      // A run's inputs are all in one segment.
      out->received.reset();
      ASSIGN_OR_RETURN(plan, LayOut(spec));
      slot = request_->Take(plan.bytes);
    }
  }
  uint64_t base = 0;
  if (slot.has_value()) {
    out->request_slot = *std::move(slot);
    base = out->request_slot.offset();
  } else if (out->received == nullptr) {
    const uint64_t bytes = std::max<uint64_t>(plan.bytes, 1);
    RETURN_IF_ERROR(CheckOwnBytes(bytes));
    ASSIGN_OR_RETURN(out->own_request, channel::RequestSegment::Create(bytes));
    run->own_request_segment = true;
  }
  if (out->received != nullptr) out->received->MarkRun();
  for (const PackedInput& input : plan.inputs) {
    run->inputs.push_back({.dtype = input.dtype,
                           .shape = input.shape,
                           .offset = input.received ? input.offset : base + input.offset,
                           .bytes = input.bytes});
  }
  return plan;
}

absl::Status WorkerHandle::PlaceResponse(OutRun* out, channel::Run* run) {
  const auto seen = static_cast<double>(response_bytes_[static_cast<size_t>(out->signature)]);
  const uint64_t wanted = std::max(kFirstGrantBytes, static_cast<uint64_t>(seen * kGrantSlack));
  std::optional<channel::Slot> slot = response_slots_->Take(wanted);
  // Better a small place, with the outputs collected afterwards if they do not fit, than none.
  if (!slot && wanted <= parts_.response.size()) {
    slot = response_slots_->Take(response_slots_->largest_bytes());
  }
  if (slot) {
    out->response_slot = *std::move(slot);
    out->region = {out->response_slot.offset(), out->response_slot.bytes()};
  } else {
    RETURN_IF_ERROR(CheckOwnBytes(wanted));
    ASSIGN_OR_RETURN(out->own_response, channel::ResponseSegment::Create(wanted));
    out->region = {0, wanted};
    run->own_response_segment = true;
  }
  run->response_offset = out->region.offset;
  run->response_bytes = out->region.bytes;
  return absl::OkStatus();
}

// What the runs that are out hold beside the standard segments has a limit.
absl::Status WorkerHandle::CheckOwnBytes(uint64_t more) const {
  uint64_t bytes = more;
  for (const auto& [id, out] : out_) {
    if (out.own_request) bytes += out.own_request->size();
    if (out.own_response) bytes += out.own_response->size();
  }
  if (bytes <= limits::kOwnSegmentsBytesMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      base::Cat("the tensors in flight for ", Name(), " would need ", bytes,
                " bytes beside its standard segments; the limit is ", limits::kOwnSegmentsBytesMax,
                "; send smaller requests, or fewer at a time"));
}

void WorkerHandle::SendAlone(const channel::Run& run) {
  Flush();  // What was submitted before goes first.
  const auto at = out_.find(run.id);
  if (at == out_.end()) return;  // The flush found the worker dead.
  std::vector<int> descriptors;
  if (at->second.own_request) descriptors.push_back(at->second.own_request->fd());
  if (at->second.own_response) descriptors.push_back(at->second.own_response->fd());
  SendRecord(channel::RunRecord{{run}}, descriptors);
}

void WorkerHandle::FlushSoon() {
  if (flush_wanted_) return;
  flush_wanted_ = true;
  loop_.Defer([self = self_] {
    if (*self != nullptr) (*self)->Flush();
  });
}

// One record for each executor that is idle, so that none waits while another has two; what is left
// goes in as few records as can be.
void WorkerHandle::Flush() {
  flush_wanted_ = false;
  const size_t before = out_.size() - pending_.size();
  const size_t idle = parts_.load.executors > before ? parts_.load.executors - before : 1;
  const size_t share = (pending_.size() + idle - 1) / std::max<size_t>(idle, 1);
  channel::RunRecord record;
  size_t bytes = 0;
  const auto send = [&] {
    if (!record.runs.empty()) SendRecord(record);
    record.runs.clear();
    bytes = 0;
  };
  for (channel::Run& run : std::exchange(pending_, {})) {
    const size_t more = channel::RunBytes(run);
    if (record.runs.size() >= std::min(share, limits::kRunsPerRecordMax) ||
        bytes + more > limits::kRecordBytesMax / 2) {
      send();
    }
    bytes += more;
    record.runs.push_back(std::move(run));
  }
  send();
}

void WorkerHandle::SendRecord(const channel::ToWorker& record,
                              const std::vector<int>& descriptors) {
  if (!watch_.active()) return;
  const absl::Status sent =
      parts_.channel.Send(channel::Encode(parts_.incarnation, record), descriptors);
  // Credits keep what is out far below the socket's buffer: one that is full is not read.
  if (!sent.ok() && !absl::IsUnavailable(sent)) Kill("it does not read its channel");
}

void WorkerHandle::OnReadable() {
  for (int i = 0; i < kRecordsAtOnce && watch_.active(); ++i) {
    absl::StatusOr<channel::Packet> packet = parts_.channel.Receive(limits::kRecordBytesMax, 0);
    if (absl::IsNotFound(packet.status())) return;
    if (absl::IsUnavailable(packet.status())) {
      // The process is gone or going; how it ended comes from the supervisor.
      return OnDying();
    }
    if (!packet.ok()) return Violation(base::Message(packet.status()));
    absl::StatusOr<channel::ToFront> record =
        channel::DecodeToFront(packet->bytes, parts_.incarnation);
    if (!record.ok()) return Violation(base::Message(record.status()));
    last_heard_ = loop_.Now();
    OnRecord(*std::move(record));
  }
}

void WorkerHandle::OnRecord(channel::ToFront record) {
  if (std::holds_alternative<channel::HelloRecord>(record)) {
    OnHello();
  } else if (const auto* loaded = std::get_if<channel::LoadedRecord>(&record)) {
    OnLoadedRecord(*loaded);
  } else if (auto* failed = std::get_if<channel::LoadFailedRecord>(&record)) {
    if (state_ != State::kLoading) return Violation("a load that failed twice");
    kill_();
    End(WorkerObserver::End::kLoadFailed, failed->status);
  } else if (auto* done = std::get_if<channel::CompletionRecord>(&record)) {
    if (state_ != State::kReady) return Violation("an answer before its model is loaded");
    const bool was_full = Free() == 0;
    for (channel::Completion& completion : done->completions) {
      if (state_ != State::kReady) return;
      OnCompletion(std::move(completion));
    }
    if (was_full && Free() > 0) observer_->OnFree();
  } else if (std::holds_alternative<channel::SegmentsTakenRecord>(record)) {
    OnSegmentsTaken();
  } else if (const auto* sealed = std::get_if<channel::SealedRecord>(&record)) {
    OnSealed(*sealed);
  } else if (const auto* dying = std::get_if<channel::DyingRecord>(&record)) {
    last_words_ = *dying;
    OnDying();
  } else if (++heartbeats_ > limits::kHeartbeatsMax) {
    Violation("a flood of heartbeats");
  }
}

void WorkerHandle::OnHello() {
  if (state_ != State::kStarting) return Violation("a second hello");
  state_ = State::kLoading;
  // Options and settings are a user's: the worker must not be the one that finds them too long.
  const std::string load = channel::Encode(parts_.incarnation, channel::ToWorker(parts_.load));
  if (const auto fits = channel::DecodeToWorker(load, parts_.incarnation); !fits.ok()) {
    kill_();
    return End(WorkerObserver::End::kLoadFailed,
               base::WithContext(fits.status(), "the settings of this model fit no record: "));
  }
  SendRecord(parts_.load);
}

void WorkerHandle::OnLoadedRecord(const channel::LoadedRecord& record) {
  if (state_ != State::kLoading) return Violation("a model that is loaded twice");
  if (record.info_bytes > std::min(parts_.response.size(), limits::kModelInfoBytesMax)) {
    return Violation("a description larger than its segment");
  }
  std::string bytes(record.info_bytes, '\0');
  const absl::Status copied = channel::CopyFromShared(
      std::as_writable_bytes(std::span(bytes.data(), bytes.size())), parts_.response, 0);
  if (!copied.ok()) return Violation(base::Message(copied));
  absl::StatusOr<engine::ModelInfo> info = engine::ParseModelInfo(bytes);
  if (!info.ok()) return Violation(base::Message(info.status()));
  absl::StatusOr<tensor::SignatureList> signatures =
      engine::ParseSignatureDefs(info->signature_def_map, engine::kSignatureDefMapField);
  if (!signatures.ok()) return Violation(base::Message(signatures.status()));
  signatures_ = *std::move(signatures);
  response_bytes_.assign(signatures_.size(), 0);
  state_ = State::kReady;
  observer_->OnLoaded(*this, *info);
}

void WorkerHandle::OnCompletion(channel::Completion completion) {
  const auto at = out_.find(completion.id);
  if (at == out_.end()) return Violation("an answer to a run that is not out");
  OutRun& out = at->second;
  out.retained = out.retained || completion.inputs_retained;
  RunOutcome outcome{.status = completion.status,
                     .run_time = absl::Nanoseconds(static_cast<int64_t>(
                         std::min<uint64_t>(completion.run_nanoseconds, INT64_MAX)))};
  if (!completion.status.ok()) return Finish(completion.id, std::move(outcome), out.retained);
  if (completion.held) {
    if (out.collecting) return Violation("outputs that are held twice");
    return Collect(completion.id, &out, completion.held_bytes);
  }
  absl::StatusOr<Unpacked> unpacked = UnpackOf(out, completion);
  if (!unpacked.ok()) return Violation(base::Message(unpacked.status()));
  uint64_t& seen = response_bytes_[static_cast<size_t>(out.signature)];
  seen = std::max<uint64_t>(seen, unpacked->bytes->size());
  copied_bytes_ += unpacked->bytes->size();
  outcome.outputs = std::move(unpacked->outputs);
  outcome.bytes = std::move(unpacked->bytes);
  Finish(completion.id, std::move(outcome), out.retained);
}

absl::StatusOr<Unpacked> WorkerHandle::UnpackOf(const OutRun& out,
                                                const channel::Completion& completion) const {
  const channel::ResponseSegment& segment = out.own_response ? *out.own_response : parts_.response;
  const tensor::Signature* const first = &signatures_[static_cast<size_t>(out.signature)];
  if (out.more_signatures.empty()) return Unpack(completion, {&first, 1}, out.region, segment);
  std::vector<const tensor::Signature*> all = {first};
  for (const int more : out.more_signatures) {
    all.push_back(&signatures_[static_cast<size_t>(more)]);
  }
  return Unpack(completion, all, out.region, segment);
}

absl::StatusOr<channel::ResponseSegment> WorkerHandle::HeldSegment(uint64_t bytes) const {
  if (bytes > limits::kTensorBytesMax) {
    return absl::ResourceExhaustedError(
        base::Cat("the outputs need ", bytes, " bytes; the limit is ", limits::kTensorBytesMax));
  }
  RETURN_IF_ERROR(CheckOwnBytes(bytes));
  return channel::ResponseSegment::Create(bytes);
}

void WorkerHandle::Collect(uint64_t id, OutRun* out, uint64_t bytes) {
  absl::StatusOr<channel::ResponseSegment> segment = HeldSegment(bytes);
  if (!segment.ok()) {
    SendRecord(channel::CollectRecord{.id = id, .response_bytes = 0});
    return Finish(id, {.status = segment.status()}, out->retained);
  }
  out->collecting = true;
  // Next time it gets so much at once.
  demand_.Note(0, static_cast<uint64_t>(static_cast<double>(bytes) * kGrantSlack), true,
               loop_.Now());
  out->own_response = *std::move(segment);
  out->region = {0, bytes};
  SendRecord(channel::CollectRecord{.id = id, .response_bytes = bytes}, {out->own_response->fd()});
}

void WorkerHandle::Finish(uint64_t id, RunOutcome outcome, bool quarantine) {
  auto node = out_.extract(id);
  if (node.empty()) return;
  if (quarantine) {
    node.mapped().request_slot.Quarantine();
    if (node.mapped().received != nullptr) node.mapped().received->Quarantine();
  }
  RunDone done = std::move(node.mapped().done);
  node = {};  // Its slots come home first: the outcome may bring the next run.
  RenewWhenIdle();
  done(std::move(outcome));
}

}  // namespace tensord::fleet
