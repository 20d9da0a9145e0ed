// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/version_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "sched/pad.h"

// What callers see: calls come in, are refused or queued, and are answered. What runs when is in
// version_queue_run.cc.
namespace tensord::sched {
namespace {

constexpr std::string_view kQueueFull =
    "The batch scheduling queue to which this task was submitted is full; ";

Pending PendingOf(const CallEntry& entry) {
  const Call& call = entry.call;
  return {.id = entry.id,
          .rows = call.rows,
          .bytes = entry.bytes,
          .criticality = call.criticality,
          .arrived = call.arrived,
          .due = DueTime(call.arrived, call.deadline),
          .deadline = call.deadline};
}

uint64_t BytesOf(const Call& call) {
  uint64_t bytes = 0;
  for (const tensor::TensorView& input : call.inputs) bytes += input.bytes.size();
  return bytes;
}

std::string Milliseconds(absl::Duration duration) {
  return base::Cat(absl::ToInt64Milliseconds(duration), " ms");
}

}  // namespace

VersionQueue::VersionQueue(loop::Timers& timers, QueueOptions options)
    : timers_(timers),
      options_(std::move(options)),
      alive_(std::make_shared<bool>(true)),
      lanes_(options_.signatures.size()) {
  policies_.reserve(options_.signatures.size());
  for (const SignatureRows& signature : options_.signatures) {
    policies_.emplace_back(options_, signature);
  }
}

VersionQueue::~VersionQueue() {
  *alive_ = false;
  if (timer_ != 0) timers_.Cancel(timer_);
  if (drain_timer_ != 0) timers_.Cancel(drain_timer_);
  for (Batch* batch : running_) {
    for (const Batch::Member& member : batch->members) {
      if (CallEntry* entry = calls_.Find(member.id); entry != nullptr) {
        batch->keeps.push_back(std::move(entry->call.keep));
      }
    }
    batch->listed = nullptr;
  }
}

CallId VersionQueue::Submit(Call call) {
  TENSORD_CHECK(call.signature >= 0 &&
                static_cast<size_t>(call.signature) < options_.signatures.size());
  TENSORD_CHECK(call.inputs.size() ==
                options_.signatures[static_cast<size_t>(call.signature)].inputs);
  ++stats_.submitted;
  const uint64_t bytes = BytesOf(call);
  Refusal refusal = Refuse(call, bytes);
  CallEntry& entry = calls_.Add(std::move(call));
  const CallId id = entry.id;
  entry.bytes = bytes;
  if (refusal.end != nullptr) {
    entry.state = CallState::kDecided;
    Decide(entry, {.status = std::move(refusal.status), .retry_after = refusal.retry_after},
           refusal.end);
  } else {
    Enqueue(entry);
    Pump();
  }
  ArmTimer();
  return id;
}

void VersionQueue::Cancel(CallId id) {
  CallEntry* entry = calls_.Find(id);
  if (entry == nullptr) return;
  if (entry->state == CallState::kInPieces) {
    for (const CallId piece : entry->pieces->ids) Cancel(piece);
  }
  if (entry->state != CallState::kDecided) {
    // A decided call already counts as what it was decided to be.
    if (!entry->is_piece) ++stats_.cancelled;
    Leave(*entry);
  }
  calls_.Remove(*entry);
  CheckDrained();
}

void VersionQueue::AddWorker(fleet::Worker* worker) {
  workers_.Add(worker);
  OnWorkerFree();
}

void VersionQueue::RemoveWorker(fleet::Worker* worker) { workers_.Remove(worker); }

void VersionQueue::OnWorkerFree() {
  Pump();
  ArmTimer();
}

void VersionQueue::Drain(loop::Task done) {
  TENSORD_CHECK(!draining_);
  draining_ = true;
  drained_ = std::move(done);
  Pump();
  ArmTimer();
  CheckDrained();
}

void VersionQueue::FailAll(const absl::Status& status) {
  for (const CallId id : calls_.Ids()) {
    CallEntry* entry = calls_.Find(id);
    if (entry == nullptr || entry->state == CallState::kDecided) continue;
    DecideStatus(*entry, status, &Stats::failed_all);
  }
  Settle();
}

Stats VersionQueue::stats() const {
  Stats stats = stats_;
  stats.queued_calls = lanes_.calls() + static_cast<int64_t>(suspects_.size());
  stats.queued_bytes = lanes_.bytes();
  stats.running_runs = static_cast<int64_t>(running_.size());
  for (const Batch* batch : running_) stats.running_calls += batch->waiting;
  stats.workers = workers_.live();
  for (const SignaturePolicy& policy : policies_) stats.signatures.push_back(policy.stats());
  return stats;
}

// ---- Admission -------------------------------------------------------------------------------

VersionQueue::Refusal VersionQueue::Refuse(const Call& call, uint64_t bytes) {
  const absl::Time now = timers_.Now();
  if (closed_) {
    return {absl::UnavailableError(base::Cat(Name(), " was unloaded; call again")),
            absl::ZeroDuration(), &Stats::refused_other};
  }
  if (call.deadline <= now) {
    return {absl::DeadlineExceededError(
                base::Cat("the deadline passed before the call reached ", Name())),
            absl::ZeroDuration(), &Stats::expired_queued};
  }
  if (Refusal refusal = RefuseByBatches(call); refusal.end != nullptr) return refusal;
  if (lanes_.calls() == 0) return {};
  const Fullness queue{.calls = lanes_.calls(),
                       .calls_max = options_.queued_calls_max,
                       .bytes = lanes_.bytes(),
                       .bytes_max = options_.queued_bytes_max};
  const Applicant applicant{.bytes = bytes,
                            .criticality = call.criticality,
                            .retry = call.retry,
                            .arrived = call.arrived,
                            .deadline = call.deadline};
  const std::optional<Forecast> forecast = ForecastOf(call);
  const Admission admission = Admit(applicant, queue, forecast, now);
  const absl::Duration after = admission.retry_after;
  switch (admission.verdict) {
    case Verdict::kAdmit:
      return {};
    case Verdict::kFull: {
      const bool down = workers_.live() == 0;
      return {
          absl::Status(down ? absl::StatusCode::kUnavailable : absl::StatusCode::kResourceExhausted,
                       base::Cat("the queue of ", Name(), " is full (", queue.calls, " calls, ",
                                 queue.bytes, " bytes wait", down ? ", no worker is ready" : "",
                                 "); try again in ", Milliseconds(after))),
          after, &Stats::refused_full};
    }
    case Verdict::kLate:
      return {absl::ResourceExhaustedError(base::Cat(
                  Name(), " is overloaded: the answer would come in about ",
                  Milliseconds(forecast->wait + forecast->run), ", the deadline is in ",
                  Milliseconds(call.deadline - now), "; try again in ", Milliseconds(after))),
              after, &Stats::refused_late};
    case Verdict::kShed:
      return {absl::ResourceExhaustedError(base::Cat(Name(), " is under pressure and lets go of ",
                                                     call.retry ? "retries" : "sheddable calls",
                                                     " first; try again in ", Milliseconds(after))),
              after, &Stats::refused_shed};
  }
  return {};
}

// The limits that an operator set, in the original's words.
VersionQueue::Refusal VersionQueue::RefuseByBatches(const Call& call) {
  const SignaturePolicy& policy = policies_[static_cast<size_t>(call.signature)];
  if (!options_.batching.has_value() || !policy.batches()) return {};
  const BatchingParameters& set = *options_.batching;
  if (set.max_batch_size.has_value() && call.rows > *set.max_batch_size) {
    return {absl::InvalidArgumentError(base::Cat("Task size ", call.rows,
                                                 " is larger than maximum input batch size ",
                                                 *set.max_batch_size, " of ", Name())),
            absl::ZeroDuration(), &Stats::refused_other};
  }
  if (!set.max_enqueued_batches.has_value()) return {};
  const int64_t batches_max = std::max<int64_t>(1, *set.max_enqueued_batches);
  if (lanes_.calls() < batches_max && !set.enable_large_batch_splitting) return {};
  const int64_t rows_max = policy.RowsCap();
  const CallLane& own = LaneOf(call, false);
  int64_t batches = 0;
  int64_t room = 0;
  for (const CallLane* lane : lanes_.active()) {
    if (lane->signature() != call.signature) continue;
    const OpenBatches open = CountBatches(lane->calls(), lane->alone() ? 1 : rows_max);
    batches += open.batches;
    if (lane == &own) room = open.room;
  }
  const int64_t rows = std::max<int64_t>(1, call.rows);
  const int64_t free = std::max<int64_t>(0, batches_max - batches);
  const bool fits =
      set.enable_large_batch_splitting ? rows <= free * rows_max + room : rows <= room || free > 0;
  if (fits) return {};
  const std::string words =
      set.enable_large_batch_splitting
          ? base::Cat("task size is ", call.rows, " but scheduling capacity is only ",
                      free * rows_max + room, " (num_enqueued_batches=", batches,
                      ", max_enqueued_batches=", batches_max,
                      ", max_execution_batch_size=", rows_max, ")")
          : base::Cat("currently ", batches, " batches enqueued and max_enqueued_batches is ",
                      batches_max);
  return {absl::UnavailableError(base::Cat(kQueueFull, words, "; try again")), absl::ZeroDuration(),
          &Stats::refused_full};
}

// When the call would be through if it were queued now; nullopt when that is not known or cannot
// matter.
std::optional<Forecast> VersionQueue::ForecastOf(const Call& call) {
  const absl::Time now = timers_.Now();
  if (call.deadline - now > limits::kPredictionReach) return std::nullopt;
  const int64_t executors = workers_.executors();
  if (executors == 0) return std::nullopt;
  const SignaturePolicy& policy = policies_[static_cast<size_t>(call.signature)];
  const CallLane& lane = LaneOf(call, false);
  int64_t rows = std::max<int64_t>(1, call.rows);
  if (!lane.alone()) rows = std::max(rows, std::min(policy.RowsCap(), lane.rows() + rows));
  const std::optional<absl::Duration> run = policy.service().P95(rows);
  if (!run.has_value()) return std::nullopt;
  const Pending pending{.criticality = call.criticality,
                        .arrived = call.arrived,
                        .due = DueTime(call.arrived, call.deadline)};
  return Forecast{.wait = WorkBefore(pending) / executors, .run = *run};
}

// Executor time until a call that were queued now would start, as far as it is known: what is left
// of the runs that are out, and what is served before it.
absl::Duration VersionQueue::WorkBefore(const Pending& call) const {
  const absl::Time now = timers_.Now();
  absl::Duration work;
  for (const Batch* batch : running_) {
    const ServiceTime& service = policies_[static_cast<size_t>(batch->signature)].service();
    const auto mean = service.Mean(std::max<int64_t>(1, batch->rows + batch->pad_rows));
    if (mean.has_value()) work += std::max(absl::ZeroDuration(), batch->started + *mean - now);
  }
  for (const CallLane* lane : lanes_.active()) {
    const SignaturePolicy& policy = policies_[static_cast<size_t>(lane->signature())];
    const auto before = static_cast<double>(lane->CallsBefore(call));
    const auto calls = static_cast<double>(lane->calls().size());
    const double rows = static_cast<double>(lane->rows()) * before / calls;
    const int64_t run_rows = lane->alone()
                                 ? std::max<int64_t>(1, lane->rows() / static_cast<int64_t>(calls))
                                 : policy.RowsCap();
    const auto mean = policy.service().Mean(run_rows);
    if (mean.has_value()) work += *mean * (rows / static_cast<double>(run_rows));
  }
  return work;
}

bool VersionQueue::Pads() const {
  return options_.batching.has_value() && options_.batching->pad_variable_length_inputs;
}

// Pieces of a call share no batch in which they would be padded: their outputs would not fit
// together again.
CallLane& VersionQueue::LaneOf(const Call& call, bool is_piece) {
  Likeness likeness = Likeness::kShapes;
  if (call.rows < 1 || !call.more_signatures.empty() ||
      !policies_[static_cast<size_t>(call.signature)].batches()) {
    likeness = Likeness::kNone;
  } else if (Pads() && !is_piece && CanPad(call.inputs)) {
    likeness = Likeness::kRanks;
  }
  return lanes_.Find(call.signature, likeness, call.inputs);
}

void VersionQueue::Enqueue(CallEntry& entry) {
  const SignaturePolicy& policy = policies_[static_cast<size_t>(entry.call.signature)];
  entry.state = CallState::kQueued;
  if (entry.alone) {
    entry.lane = &lanes_.Find(entry.call.signature, Likeness::kNone, entry.call.inputs);
  } else {
    entry.lane = &LaneOf(entry.call, entry.is_piece);
    const bool split = !entry.lane->alone() && options_.batching.has_value() &&
                       options_.batching->enable_large_batch_splitting;
    if (split && entry.call.rows > policy.RowsCap()) {
      SubmitPieces(entry, policy.RowsCap());
      return;
    }
  }
  lanes_.Push(*entry.lane, PendingOf(entry));
}

// ---- Calls larger than a batch ---------------------------------------------------------------

void VersionQueue::SubmitPieces(CallEntry& entry, int64_t rows_max) {
  const CallId parent = entry.id;
  const Call& call = entry.call;
  auto cutter = RowCutter::Open(call.inputs, call.keep, call.rows);
  if (!cutter.ok()) {
    DecideStatus(entry, absl::InternalError(cutter.status().message()), &Stats::answered);
    return;
  }
  entry.state = CallState::kInPieces;
  calls_.ForgetDeadline(entry);  // The pieces have it.
  entry.pieces = std::make_unique<CallPieces>();
  for (int64_t first = 0; first < call.rows; first += rows_max) {
    const int64_t rows = std::min(rows_max, call.rows - first);
    OwnedViews cut = cutter->Cut(first, rows);
    CallEntry& piece = calls_.Add({
        .signature = call.signature,
        .inputs = std::move(cut.tensors),
        .keep = std::move(cut.keep),
        .rows = rows,
        .arrived = call.arrived,
        .deadline = call.deadline,
        .criticality = call.criticality,
        .done = [this, parent, i = entry.pieces->ids.size()](
                    CallResult result) { OnPiece(parent, i, std::move(result)); },
    });
    piece.is_piece = true;
    piece.bytes = BytesOf(piece.call);
    entry.pieces->ids.push_back(piece.id);
    Enqueue(piece);
  }
  entry.pieces->left = entry.pieces->ids.size();
  entry.pieces->outputs.resize(entry.pieces->left);
}

void VersionQueue::OnPiece(CallId parent, size_t piece, CallResult result) {
  CallEntry* entry = calls_.Find(parent);
  if (entry == nullptr || entry->state != CallState::kInPieces) return;
  CallPieces& pieces = *entry->pieces;
  CallResult& whole = pieces.result;
  whole.queued = std::max(whole.queued, result.queued);
  whole.run_time += result.run_time;
  whole.batch_rows = std::max(whole.batch_rows, result.batch_rows);
  if (result.status.ok()) {
    pieces.outputs[piece] = {std::move(result.outputs), std::move(result.keep)};
    if (--pieces.left > 0) return;
    absl::StatusOr<OwnedViews> joined = JoinRows(pieces.outputs);
    if (joined.ok()) {
      whole.outputs = std::move(joined->tensors);
      whole.keep = std::move(joined->keep);
    }
    whole.status = joined.status();
  } else {
    whole.status = std::move(result.status);
    for (const CallId id : pieces.ids) Cancel(id);
  }
  const bool late = absl::IsDeadlineExceeded(whole.status);
  Decide(*entry, std::move(whole), late ? &Stats::expired_running : &Stats::answered);
}

// ---- Ending calls ----------------------------------------------------------------------------

// Takes the call out of its lane or batch.
void VersionQueue::Leave(CallEntry& entry) {
  if (entry.state == CallState::kQueued) {
    if (entry.lane == nullptr) {
      std::erase(suspects_, entry.id);
    } else {
      lanes_.Remove(*entry.lane, PendingOf(entry));
    }
  } else if (entry.state == CallState::kRunning) {
    Batch& batch = *entry.batch;
    batch.members[entry.batch_index].id = 0;
    --batch.waiting;
    // The worker may still read the inputs.
    if (entry.call.keep != nullptr) batch.keeps.push_back(std::move(entry.call.keep));
  }
}

void VersionQueue::Decide(CallEntry& entry, CallResult result, End end) {
  Leave(entry);
  entry.state = CallState::kDecided;
  calls_.ForgetDeadline(entry);
  if (!entry.is_piece) ++(stats_.*end);
  answers_.push_back({entry.id, std::move(result)});
}

void VersionQueue::DecideStatus(CallEntry& entry, absl::Status status, End end) {
  const bool ran = entry.state == CallState::kRunning;
  const absl::Time until = ran ? entry.started : timers_.Now();
  Decide(entry, {.status = std::move(status), .queued = until - entry.call.arrived}, end);
}

// Hands out what was decided. A `done` may do anything with the queue, FailAll included, which then
// delivers what this one would have.
void VersionQueue::Deliver() {
  const std::shared_ptr<bool> alive = alive_;
  ++delivering_;
  while (answers_delivered_ < answers_.size()) {
    Answer answer = std::move(answers_[answers_delivered_++]);
    CallEntry* entry = calls_.Find(answer.id);
    if (entry == nullptr) continue;  // Cancelled meanwhile.
    auto done = std::move(entry->call.done);
    calls_.Remove(*entry);
    done(std::move(answer.result));
    if (!*alive) return;
  }
  answers_.clear();
  answers_delivered_ = 0;
  --delivering_;
}

void VersionQueue::Settle() {
  const std::shared_ptr<bool> alive = alive_;
  Deliver();
  if (!*alive) return;
  ArmTimer();
  CheckDrained();
}

void VersionQueue::ArmTimer() {
  absl::Time next = std::min(calls_.NextDeadline(), wake_);
  if (!answers_.empty() && delivering_ == 0) next = timers_.Now();
  if (next == absl::InfiniteFuture() || (timer_ != 0 && timer_at_ <= next)) return;
  if (timer_ != 0) timers_.Cancel(timer_);
  timer_at_ = next;
  timer_ = timers_.At(next, [this] {
    timer_ = 0;
    Pump();
    Settle();
  });
}

void VersionQueue::CheckDrained() {
  if (!draining_ || closed_ || drain_timer_ != 0 || calls_.size() > 0) return;
  drain_timer_ = timers_.At(timers_.Now(), [this] { OnDrainTimer(); });
}

void VersionQueue::OnDrainTimer() {
  drain_timer_ = 0;
  if (calls_.size() > 0) return;  // A late call; it ends first.
  closed_ = true;
  loop::Task drained = std::move(drained_);
  drained();  // May destroy the queue.
}

std::string VersionQueue::Name() const {
  return base::Cat("model ", options_.model, ", version ", options_.version);
}

}  // namespace tensord::sched
