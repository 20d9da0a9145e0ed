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

Pending PendingOf(const CallEntry& entry) {
  const Call& call = entry.call;
  return {.id = entry.id,
          .rows = call.rows,
          .bytes = entry.bytes,
          .criticality = call.criticality,
          .arrived = call.arrived,
          .due = entry.due,
          .deadline = call.deadline,
          // How long joint runs take is not learnt.
          .trial = entry.trial || !call.more_signatures.empty()};
}

uint64_t BytesOf(const Call& call) {
  uint64_t bytes = 0;
  for (const tensor::TensorView& input : call.inputs) bytes += input.bytes.size();
  return bytes;
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
  const CallId id = Add(std::move(call));
  Dispatch();
  return id;
}

void VersionQueue::Dispatch() {
  waits_for_dispatch_ = false;
  Pump();
  ArmTimer();
}

CallId VersionQueue::Add(Call call) {
  TENSORD_CHECK(call.signature >= 0 &&
                static_cast<size_t>(call.signature) < options_.signatures.size());
  TENSORD_CHECK(call.inputs.size() ==
                options_.signatures[static_cast<size_t>(call.signature)].inputs);
  ++stats_.submitted;
  stats_.received_bytes += call.received_bytes;
  const uint64_t bytes = BytesOf(call);
  const PoisonList::Standing standing = poison_.Find(call, timers_.Now());
  Refusal refusal = RefuseByContent(standing);
  if (refusal.end == nullptr) refusal = Refuse(call, bytes);
  CallEntry& entry = calls_.Add(std::move(call));
  const CallId id = entry.id;
  entry.bytes = bytes;
  if (refusal.end == nullptr && options_.model_bytes != nullptr) {
    entry.model_bytes = ModelBytesHeld(options_.model_bytes, bytes);
  }
  if (refusal.end != nullptr) {
    entry.state = CallState::kDecided;
    Decide(entry, {.status = std::move(refusal.status), .retry_after = refusal.retry_after},
           refusal.end);
  } else {
    entry.trial = refusal.trial;
    entry.noted = standing != PoisonList::Standing::kClean;
    if (standing == PoisonList::Standing::kSuspect) {
      EnqueueSuspect(entry);
    } else {
      Enqueue(entry);
    }
    waits_for_dispatch_ = true;
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

void VersionQueue::Seed(std::span<const RunTimeHint> hints) {
  for (const RunTimeHint& hint : hints) {
    if (hint.signature < 0 || static_cast<size_t>(hint.signature) >= policies_.size()) continue;
    policies_[static_cast<size_t>(hint.signature)].Seed(hint);
  }
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

// ---- Into the queue ------------------------------------------------------------------------

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
  const Call& call = entry.call;
  FairShare& fair = fair_[static_cast<size_t>(call.criticality)];
  if (entry.due == absl::InfinitePast()) {
    entry.turn = fair.Turn(call.client, timers_.Now());
    entry.due = DueTime(entry.turn, call.deadline);
  }
  fair.Wait(call.client, CostOf(call, entry.bytes), timers_.Now());
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
        .client = call.client,
        .done = [this, parent, i = entry.pieces->ids.size()](
                    CallResult result) { OnPiece(parent, i, std::move(result)); },
    });
    piece.is_piece = true;
    piece.trial = entry.trial;
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
      fair_[static_cast<size_t>(entry.call.criticality)].Leave(entry.call.client);
      lanes_.Remove(*entry.lane, PendingOf(entry));
    }
  } else if (entry.state == CallState::kRunning) {
    Batch& batch = *entry.batch;
    batch.members[entry.batch_index].id = 0;
    if (--batch.waiting == 0) OnAbandoned(batch);
    // The worker may still read the inputs, and may yet crash of them.
    batch.left.push_back({.signature = entry.call.signature,
                          .inputs = std::move(entry.call.inputs),
                          .keep = std::move(entry.call.keep)});
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
