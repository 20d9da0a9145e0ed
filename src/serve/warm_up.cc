// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/warm_up.h"

#include <atomic>
#include <thread>

#include "base/limits.h"
#include "base/sched_limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "sched/rows.h"
#include "wire/bind.h"
#include "wire/examples.h"
#include "wire/inference.h"
#include "wire/predict_walk.h"

namespace tensord::serve {
namespace {

using Kind = wire::WarmUpRecord::Kind;

// Threads that read, also those that hang for ever.
std::atomic<int> readers = 0;

RecordReader::Piece ReadPiece(const std::string& path, std::unique_ptr<RecordReader>* file) {
  if (*file == nullptr) {
    absl::StatusOr<RecordReader> opened = RecordReader::Open(path);
    if (!opened.ok()) return {.records = {}, .end = true, .status = opened.status()};
    *file = std::make_unique<RecordReader>(*std::move(opened));
  }
  return (*file)->Next();
}

}  // namespace

struct WarmUp::Call {
  std::string bytes;               // What the request points into.
  tensor::PredictRequest request;  // Likewise the inputs,
  tensor::Tensor examples;         // or this.
  int signature = 0;
  std::vector<int> more_signatures;
  std::vector<tensor::TensorView> inputs;
  int64_t rows = -1;
  std::shared_ptr<const void> keep;  // Of inputs that were cut out.
};

WarmUp::WarmUp(loop::EventLoop& loop, std::shared_ptr<models::Mailbox> mailbox,
               fleet::Worker* worker, tensor::SignatureList signatures, WarmUpPlan plan, Done done)
    : loop_(loop),
      mailbox_(std::move(mailbox)),
      worker_(worker),
      signatures_(std::move(signatures)),
      plan_(std::move(plan)),
      done_(std::move(done)),
      file_(std::make_shared<std::unique_ptr<RecordReader>>()),
      begun_(loop.Now()),
      self_(std::make_shared<WarmUp*>(this)) {
  loop_.Defer([self = self_] {
    if (*self != nullptr) (*self)->ReadOn();
  });
}

WarmUp::~WarmUp() {
  *self_ = nullptr;
  loop_.Cancel(read_timer_);
}

// A thread for each piece, some milliseconds: one that hangs with its file system hangs alone.
void WarmUp::ReadOn() {
  RecordReader::Piece nothing{.records = {}, .end = true, .status = {}};
  if (readers.load() >= limits::kWarmUpReadersMax) {
    nothing.status = absl::UnavailableError(
        base::Cat(limits::kWarmUpReadersMax, " reads of warm-up files hang already"));
    reading_ = true;
    return loop_.Defer([self = self_, nothing = std::move(nothing)]() mutable {
      if (*self != nullptr) (*self)->OnPiece(std::move(nothing));
    });
  }
  reading_ = true;
  readers.fetch_add(1);
  std::thread([mailbox = mailbox_, self = self_, file = file_, path = plan_.file] {
    RecordReader::Piece piece = ReadPiece(path, file.get());
    readers.fetch_sub(1);
    mailbox->Post([self, piece = std::move(piece)]() mutable {
      if (*self != nullptr && (*self)->reading_) (*self)->OnPiece(std::move(piece));
    });
  }).detach();
  read_timer_ = loop_.At(loop_.Now() + limits::kWarmUpReadMax, [this] {
    read_timer_ = 0;
    OnPiece({.records = {},
             .end = true,
             .status = absl::UnavailableError("reading it takes too long; its file system hangs")});
  });
}

void WarmUp::OnPiece(RecordReader::Piece piece) {
  reading_ = false;
  loop_.Cancel(std::exchange(read_timer_, 0));
  at_end_ = piece.end;
  for (std::string& record : piece.records) records_.push_back(std::move(record));
  // What is wrong behind these is said after they ran; there is no difference to anybody.
  if (!piece.status.ok()) Problem(piece.status);
  Step();
}

void WarmUp::Step() {
  const bool go_on = report_.status.ok();
  if (go_on && StartRecord()) return;
  // Asked again: the record may have been one that fails the load.
  if (report_.status.ok() && StartBucket()) return;
  if (problems_ > kProblemsSaid) {
    report_.warnings.push_back(
        base::Cat(plan_.file, ": ", problems_ - kProblemsSaid, " more records failed"));
  }
  report_.time = loop_.Now() - begun_;
  for (const auto& [size, time] : shortest_) {
    if (time == absl::InfiniteDuration()) continue;
    if (report_.run_times.size() >= limits::kTimedRunsMax) break;
    report_.run_times.push_back(
        {.signature = static_cast<uint32_t>(size.first),
         .rows = size.second,
         .nanoseconds = static_cast<uint64_t>(absl::ToInt64Nanoseconds(time))});
  }
  Done done = std::move(done_);
  done(std::move(report_));
}

bool WarmUp::StartRecord() {
  while (true) {
    if (repeats_left_ > 0) {
      --repeats_left_;
      Submit(current_, 1);
      return true;
    }
    if (records_.empty()) {
      if (!at_end_) ReadOn();
      return !at_end_;
    }
    std::string record = std::move(records_.front());
    records_.pop_front();
    if (taken_ == limits::kWarmUpRecordsMax) {
      records_.clear();
      at_end_ = true;
      Problem(absl::InvalidArgumentError(base::Cat("it has more than ", limits::kWarmUpRecordsMax,
                                                   " records; the rest is not replayed")));
      return false;
    }
    ++taken_;
    const absl::Status taken = Take(std::move(record));
    if (!taken.ok()) Problem(base::WithContext(taken, base::Cat("record ", taken_, ": ")));
    if (!report_.status.ok()) return false;
  }
}

// Makes the record the current call; leaves no repeats where there is nothing to run.
absl::Status WarmUp::Take(std::string record) {
  auto call = std::make_shared<Call>();
  call->bytes = std::move(record);
  ASSIGN_OR_RETURN(const wire::WarmUpRecord parsed, wire::ParseWarmUpRecord(call->bytes));
  if (parsed.kind == Kind::kNone || parsed.kind == Kind::kSessionRun) return absl::OkStatus();
  if (parsed.kind == Kind::kPredictStreamed) {
    return absl::UnimplementedError(
        base::Cat("a ", wire::KindName(parsed.kind), " record cannot be replayed"));
  }
  RETURN_IF_ERROR(parsed.kind == Kind::kPredict
                      ? BindPredict(parsed.request, call.get())
                      : BindExamples(parsed.kind, parsed.request, call.get()));
  if (call->rows > 0 && call->more_signatures.empty() &&
      wire::IsBatchable(signatures_[static_cast<size_t>(call->signature)])) {
    firsts_.try_emplace(call->signature, call);
  }
  current_ = std::move(call);
  repeats_left_ = plan_.repeats;
  ++report_.records;  // Taken back by a run that fails.
  return absl::OkStatus();
}

absl::Status WarmUp::BindPredict(std::string_view request, Call* call) const {
  ASSIGN_OR_RETURN(call->request, wire::ParsePredict(request));
  ASSIGN_OR_RETURN(call->signature,
                   wire::FindSignature(signatures_, call->request.spec.signature_name));
  const tensor::Signature& signature = signatures_[static_cast<size_t>(call->signature)];
  ASSIGN_OR_RETURN(wire::BoundCall bound, wire::Bind(call->request, signature));
  call->inputs = std::move(bound.inputs);
  if (bound.fits_signature) call->rows = bound.rows;
  return absl::OkStatus();
}

absl::Status WarmUp::BindExamples(Kind kind, std::string_view request, Call* call) const {
  ASSIGN_OR_RETURN(const wire::InferenceRequest asked, kind == Kind::kMultiInference
                                                           ? wire::WalkMultiInference(request)
                                                           : wire::WalkInference(request));
  for (size_t i = 0; i < asked.tasks.size(); ++i) {
    const wire::InferenceTask& task = asked.tasks[i];
    ASSIGN_OR_RETURN(const int signature,
                     wire::FindTaskSignature(signatures_, task.spec.signature_name));
    wire::InferenceMethod method =
        kind == Kind::kRegress ? wire::InferenceMethod::kRegress : wire::InferenceMethod::kClassify;
    if (kind == Kind::kMultiInference) {
      ASSIGN_OR_RETURN(method, wire::MethodOf(task.method));
    }
    const auto outputs = wire::CheckInference(signatures_[static_cast<size_t>(signature)], method,
                                              /*check_name=*/false);
    RETURN_IF_ERROR(outputs.status());
    if (i == 0) {
      call->signature = signature;
    } else {
      call->more_signatures.push_back(signature);
    }
  }
  ASSIGN_OR_RETURN(call->examples, wire::ReadExamples(asked.input));
  call->inputs = {call->examples.view()};
  call->rows = call->examples.shape.dim(0);
  return absl::OkStatus();
}

void WarmUp::PlanBuckets() {
  buckets_planned_ = true;
  for (const auto& [signature, call] : firsts_) {
    uint64_t bytes = 0;
    for (const tensor::TensorView& input : call->inputs) bytes += input.bytes.size();
    const uint64_t row_bytes = bytes / static_cast<uint64_t>(call->rows);
    for (const int64_t rows : plan_.rows) {
      // The scheduler forms no larger batches.
      if (rows > 1 && static_cast<uint64_t>(rows) * row_bytes > limits::kBatchBytesMax) continue;
      if (!sizes_.contains({signature, rows})) buckets_.emplace_back(signature, rows);
    }
  }
}

bool WarmUp::StartBucket() {
  if (!buckets_planned_) PlanBuckets();
  while (!buckets_.empty()) {
    const auto [signature, rows] = buckets_.front();
    buckets_.pop_front();
    const std::shared_ptr<Call>& whole = firsts_.at(signature);
    absl::StatusOr<sched::RowCutter> cutter =
        sched::RowCutter::Open(whole->inputs, whole, whole->rows);
    if (!cutter.ok()) continue;
    auto call = std::make_shared<Call>();
    sched::OwnedViews row = cutter->Cut(0, 1);
    call->signature = signature;
    call->inputs = std::move(row.tensors);
    call->keep = std::move(row.keep);
    call->rows = 1;
    Submit(call, rows);
    return true;
  }
  return false;
}

void WarmUp::Submit(const std::shared_ptr<Call>& call, int64_t copies) {
  if (worker_->Free() <= 0) return;  // It is to stop, or dying: whoever owns this hears of it.
  const std::string& signature = signatures_[static_cast<size_t>(call->signature)].name;
  what_ = copies == 1 ? base::Cat("warm-up record ", taken_)
                      : base::Cat("warm-up of signature '", signature, "' with ", copies, " rows");
  size_ = {call->signature, call->more_signatures.empty() ? call->rows * copies : 0};
  if (call->rows > 0) sizes_.emplace(call->signature, call->rows * copies);
  fleet::RunSpec spec{.signature = call->signature,
                      .more_signatures = call->more_signatures,
                      .inputs = {},
                      .deadline = loop_.Now() + limits::kWarmUpRunMax};
  for (const tensor::TensorView& input : call->inputs) {
    spec.inputs.emplace_back(static_cast<size_t>(copies), input);
  }
  worker_->Submit(std::move(spec), [self = self_, call](const fleet::RunOutcome& outcome) {
    if (*self != nullptr) (*self)->OnRun(outcome);
  });
}

void WarmUp::OnRun(const fleet::RunOutcome& outcome) {
  if (outcome.worker_lost) return;  // Its end is told to whoever owns this.
  ++report_.runs;
  const std::string what = std::exchange(what_, "");
  if (outcome.status.ok() && size_.second > 0) {
    // The first run of a size says how long it takes to get ready for it.
    const auto [at, first] = shortest_.try_emplace(size_, absl::InfiniteDuration());
    if (!first) at->second = std::min(at->second, outcome.run_time);
  }
  if (!outcome.status.ok()) {
    if (!buckets_planned_) --report_.records;
    repeats_left_ = 0;
    Problem(base::WithContext(outcome.status, base::Cat(what, ": ")));
  }
  Step();
}

void WarmUp::Problem(const absl::Status& status) {
  const absl::Status said = base::WithContext(status, base::Cat(plan_.file, ": "));
  ++problems_;
  if (plan_.strict) {
    report_.status.Update(said);
  } else if (problems_ <= kProblemsSaid) {
    report_.warnings.emplace_back(base::Message(said));
  }
}

}  // namespace tensord::serve
