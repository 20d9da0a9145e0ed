// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/sched_limits.h"
#include "base/text.h"
#include "sched/pad.h"
#include "sched/rows.h"
#include "sched/version_queue.h"

// What runs when, and what becomes of a run's outcome.
namespace tensord::sched {
namespace {

// Calls have to die in the queue for this long, without a pause as long, before it is served newest
// first.
constexpr absl::Duration kDeathsPersist = absl::Milliseconds(100);

// The hand-over between two runs costs some 20 us; a run behind which the next is staged saves
// that. For longer runs than this it is nothing, while the staged calls can no longer form a larger
// batch.
constexpr absl::Duration kStagedRunMax = absl::Milliseconds(1);

// Two runs side by side instead of one of both's rows cost another hand-over, and the model's fixed
// part again: for runs as short as these that is most of the work.
constexpr absl::Duration kSharedRunMin = absl::Microseconds(200);

// Rows that make up an allowed batch size: row 0 of the last call, as often as needed.
void AppendPadding(const Call& last, int64_t pad_rows, fleet::RunSpec* spec, Batch* batch) {
  std::vector<tensor::TensorView> inputs;  // As they run, which may be padded.
  for (const auto& pieces : spec->inputs) inputs.push_back(pieces.back());
  absl::StatusOr<RowCutter> cutter = RowCutter::Open(inputs, last.keep, last.rows);
  TENSORD_CHECK(cutter.ok());  // The call's rows were counted from its inputs.
  OwnedViews row = cutter->Cut(0, 1);
  for (size_t i = 0; i < row.tensors.size(); ++i) {
    spec->inputs[i].insert(spec->inputs[i].end(), static_cast<size_t>(pad_rows), row.tensors[i]);
  }
  batch->keeps.push_back(std::move(row.keep));
}

}  // namespace

// Expires what is due and gives free workers what waits. Runs no callbacks of calls.
void VersionQueue::Pump() {
  if (pumping_) return;
  pumping_ = true;
  while (calls_.NextDeadline() <= timers_.Now()) Expire(calls_.NextToExpire());
  wake_ = absl::InfiniteFuture();
  RunSuspects();
  while (RunNext()) {
  }
  pumping_ = false;
}

void VersionQueue::Expire(CallEntry& entry) {
  const absl::Duration waited = timers_.Now() - entry.call.arrived;
  const std::string after = base::Cat(absl::ToInt64Milliseconds(waited), " ms after it arrived");
  if (entry.state == CallState::kRunning) {
    DecideStatus(entry,
                 absl::DeadlineExceededError(base::Cat("the deadline passed ", after, ", while ",
                                                       Name(), " was running the call")),
                 &Stats::expired_running);
    return;
  }
  NoteDeathInQueue();
  DecideStatus(entry,
               absl::DeadlineExceededError(base::Cat(
                   "the deadline passed ", after, ", while the call waited in the queue of ",
                   Name(), workers_.live() == 0 ? ", which has no worker at the moment" : "")),
               &Stats::expired_queued);
}

void VersionQueue::DropHopeless(const std::vector<CallId>& ids) {
  if (ids.empty()) return;
  NoteDeathInQueue();
  for (const CallId id : ids) {
    CallEntry* entry = calls_.Find(id);
    DecideStatus(*entry,
                 absl::DeadlineExceededError(base::Cat("the call waited in the queue of ", Name(),
                                                       " until it could not be answered",
                                                       " in time any more")),
                 &Stats::hopeless);
  }
}

void VersionQueue::NoteDeathInQueue() {
  const absl::Time now = timers_.Now();
  if (death_last_ + kDeathsPersist < now) deaths_since_ = now;
  death_last_ = now;
}

bool VersionQueue::NewestFirst() const {
  return death_last_ + kDeathsPersist >= timers_.Now() &&
         death_last_ - deaths_since_ >= kDeathsPersist;
}

// One suspect at a time, on a worker where nothing else can be harmed or blamed.
void VersionQueue::RunSuspects() {
  if (suspect_out_) return;
  if (suspects_.empty()) {
    workers_.EndQuiet();
    return;
  }
  WorkerSlot* slot = workers_.PickQuiet();
  if (slot == nullptr) return;
  const CallId id = suspects_.front();
  suspects_.erase(suspects_.begin());
  suspect_out_ = true;
  Run(*slot, std::span(&id, 1), nullptr, 0);
  running_.back()->suspect = true;
}

// An idle executor, or a place behind a busy one if all that waits is known to be short.
WorkerSlot* VersionQueue::PickWorker() {
  if (WorkerSlot* slot = workers_.PickIdle(); slot != nullptr) return slot;
  for (const CallLane* lane : lanes_.active()) {
    const SignaturePolicy& policy = policies_[static_cast<size_t>(lane->signature())];
    const int64_t rows = lane->alone() ? 1 : std::min(policy.RowsCap(), lane->rows());
    if (policy.service().P95(rows).value_or(absl::InfiniteDuration()) > kStagedRunMax) {
      return nullptr;
    }
  }
  return workers_.PickStaging();
}

// Starts one run if there is one to start and a worker to take it.
bool VersionQueue::RunNext() {
  if (lanes_.calls() == 0) return false;
  // A run that writes what another one reads would answer with the other's half-done work.
  if (options_.stateful && !running_.empty()) return false;
  if (options_.batching.has_value() && options_.batching->num_batch_threads.has_value() &&
      static_cast<int64_t>(running_.size()) >= *options_.batching->num_batch_threads) {
    return false;
  }
  WorkerSlot* slot = PickWorker();
  if (slot == nullptr) return false;
  plan_lanes_.clear();
  for (const CallLane* lane : lanes_.active()) {
    const SignaturePolicy& policy = policies_[static_cast<size_t>(lane->signature())];
    plan_lanes_.push_back({.calls = lane->calls(),
                           .limits = lane->alone() ? policy.LoneLimits() : policy.Limits(),
                           .service = &policy.service()});
    ShareOut(lane->rows(), policy, &plan_lanes_.back().limits);
  }
  const PlanRules rules{.closing = draining_, .newest_first = NewestFirst()};
  BatchPlan plan = PlanBatch(plan_lanes_, rules, timers_.Now());
  if (Pads()) LimitPadding(&plan);
  DropHopeless(plan.hopeless);
  wake_ = plan.wake;
  if (plan.batch.empty()) return !plan.hopeless.empty();  // Those behind them have their turn.
  Run(*slot, plan.batch, &plan_lanes_[plan.lane], plan.pad_rows);
  return true;
}

// Where several executors are idle, each gets its part of what waits, unless it is so short a run
// that handing it over costs more than it would save.
void VersionQueue::ShareOut(int64_t rows, const SignaturePolicy& policy,
                            BatchLimits* limits) const {
  const int64_t idle = workers_.idle();
  const bool ours = limits->together && !options_.batching.has_value();
  if (!ours || idle < 2 || rows < 2) return;
  const int64_t batch = std::min(rows, limits->rows_max);
  if (policy.service().Mean(batch).value_or(absl::ZeroDuration()) < kSharedRunMin) return;
  limits->rows_max = std::min(limits->rows_max, (rows + idle - 1) / idle);
}

// Leaves out calls that would make too much of their neighbours, or these of them.
void VersionQueue::LimitPadding(BatchPlan* plan) {
  if (plan->batch.size() < 2) return;
  std::vector<CallInputs> calls;
  for (const CallId id : plan->batch) calls.emplace_back(calls_.Find(id)->call.inputs);
  if (!std::ranges::all_of(calls, CanPad)) return;  // Of equal shapes, then.
  const size_t count = PaddedPrefix(calls);
  if (count == plan->batch.size()) return;
  plan->batch.resize(count);
  plan->rows = 0;
  for (const CallId id : plan->batch) plan->rows += calls_.Find(id)->call.rows;
  plan->pad_rows = PadRows(plan->rows, plan_lanes_[plan->lane].limits.allowed_rows);
}

void VersionQueue::Run(WorkerSlot& slot, std::span<const CallId> ids, const Lane* lane,
                       int64_t pad_rows) {
  auto batch = std::make_unique<Batch>();
  batch->listed = &running_;
  batch->worker = &slot;
  batch->together = lane != nullptr && lane->limits.together;
  batch->pad_rows = pad_rows;
  batch->started = timers_.Now();
  batch->name = ++last_run_;
  batch->members.reserve(ids.size());
  fleet::RunSpec spec;
  spec.deadline = absl::InfinitePast();
  spec.kill_at = batch->started + options_.run_timeout;
  spec.name = batch->name;
  for (const CallId id : ids) {
    CallEntry& entry = *calls_.Find(id);
    Call& call = entry.call;
    if (spec.inputs.empty()) spec.inputs.resize(call.inputs.size());
    for (size_t i = 0; i < call.inputs.size(); ++i) spec.inputs[i].push_back(call.inputs[i]);
    spec.signature = call.signature;
    spec.more_signatures = call.more_signatures;
    spec.deadline = std::max(spec.deadline, call.deadline);
    if (lane != nullptr) {
      Leave(entry);
      fair_[static_cast<size_t>(call.criticality)].Serve(entry.turn);
    }
    entry.state = CallState::kRunning;
    entry.batch = batch.get();
    entry.batch_index = batch->members.size();
    entry.started = batch->started;
    batch->members.push_back({id, call.rows});
    batch->rows += call.rows;
  }
  batch->signature = spec.signature;
  batch->joint = !spec.more_signatures.empty();
  batch->waiting = static_cast<int64_t>(ids.size());
  if (Pads() && ids.size() > 1) {
    for (std::vector<tensor::TensorView>& pieces : spec.inputs) PadPieces(pieces, &batch->keeps);
  }
  if (pad_rows > 0) AppendPadding(calls_.Find(ids.back())->call, pad_rows, &spec, batch.get());
  running_.push_back(batch.get());
  workers_.RunStarted(slot);
  slot.worker->Submit(std::move(spec),
                      [this, batch = std::move(batch)](fleet::RunOutcome outcome) mutable {
                        // Unlisted means that the queue is gone.
                        if (batch->listed == nullptr) return;
                        OnOutcome(std::move(batch), std::move(outcome));
                      });
}

void VersionQueue::OnOutcome(std::unique_ptr<Batch> batch, fleet::RunOutcome outcome) {
  std::erase(running_, batch.get());
  batch->listed = nullptr;
  if (batch->suspect) suspect_out_ = false;
  CountRun(*batch, outcome);
  if (outcome.worker_lost) {
    if (!std::exchange(batch->worker->died, true)) ++stats_.workers_lost;
    workers_.MarkLost(*batch->worker);
    if (outcome.crashed || outcome.unexplained) Suspect(*batch, outcome.crashed);
    AfterLoss(*batch, outcome);
  } else {
    if (batch->suspect) {
      ClearSuspect(*batch);
    } else {
      NoteFineRun(*batch);
    }
    if (outcome.status.ok()) {
      AfterOutputs(*batch, outcome);
    } else {
      AfterError(*batch, outcome.status, batch->members.size() > 1);
    }
  }
  workers_.RunEnded(*batch->worker);
  batch.reset();
  Pump();  // The worker first: it has nothing to do.
  Settle();
}

void VersionQueue::CountRun(const Batch& batch, const fleet::RunOutcome& outcome) {
  const bool ok = outcome.status.ok();
  ++stats_.runs;
  stats_.run_calls += static_cast<int64_t>(batch.members.size());
  stats_.run_rows += std::max<int64_t>(0, batch.rows);
  stats_.pad_rows += batch.pad_rows;
  stats_.run_time += outcome.run_time;
  const auto members = static_cast<double>(batch.members.size());
  stats_.wasted_run_time += outcome.run_time * (1 - static_cast<double>(batch.waiting) / members);
  if (ok && !batch.joint) {
    policies_[static_cast<size_t>(batch.signature)].Learn(batch.rows + batch.pad_rows,
                                                          outcome.run_time);
  }
  if (options_.on_run != nullptr) {
    options_.on_run({.signature = batch.signature,
                     .calls = static_cast<int64_t>(batch.members.size()),
                     .rows = std::max<int64_t>(0, batch.rows),
                     .pad_rows = batch.pad_rows,
                     .run_time = outcome.run_time,
                     .ok = ok});
  }
}

void VersionQueue::AfterOutputs(Batch& batch, fleet::RunOutcome& outcome) {
  const bool cut = batch.members.size() > 1 || batch.pad_rows > 0;
  const int64_t rows = batch.rows + batch.pad_rows;
  std::optional<RowCutter> cutter;
  if (cut) {
    absl::StatusOr<RowCutter> opened = RowCutter::Open(outcome.outputs, outcome.bytes, rows);
    if (!opened.ok()) {
      // The model gives other rows than it gets. From now on every call runs alone, as it is.
      const bool others = absl::IsFailedPrecondition(opened.status());
      if (others) policies_[static_cast<size_t>(batch.signature)].StopBatching();
      AfterError(batch, opened.status(), others || batch.members.size() > 1);
      return;
    }
    cutter = *std::move(opened);
  }
  int64_t first = 0;
  for (const Batch::Member& member : batch.members) {
    CallEntry* entry = member.id == 0 ? nullptr : calls_.Find(member.id);
    if (entry != nullptr) {
      CallResult result{.queued = entry->started - entry->call.arrived,
                        .run_time = outcome.run_time,
                        .batch_rows = std::max<int64_t>(1, rows)};
      if (cut) {
        OwnedViews own = cutter->Cut(first, member.rows);
        result.outputs = std::move(own.tensors);
        result.keep = std::move(own.keep);
      } else {
        result.outputs = std::move(outcome.outputs);
        result.keep = std::move(outcome.bytes);
      }
      Decide(*entry, std::move(result), &Stats::answered);
    }
    first += member.rows;
  }
}

// The run failed. `again`: each call runs once more, alone, because one of many may be to blame.
// Never with a stateful model, whose calls are neither batched nor padded.
void VersionQueue::AfterError(Batch& batch, const absl::Status& status, bool again) {
  for (const Batch::Member& member : batch.members) {
    if (member.id == 0) continue;
    CallEntry& entry = *calls_.Find(member.id);
    if (again) {
      RunAgain(entry, false);
      continue;
    }
    Decide(entry,
           {.status = status,
            .queued = entry.started - entry.call.arrived,
            .batch_rows = std::max<int64_t>(1, batch.rows + batch.pad_rows)},
           &Stats::answered);
  }
}

void VersionQueue::AfterLoss(Batch& batch, const fleet::RunOutcome& outcome) {
  for (const Batch::Member& member : batch.members) {
    if (member.id == 0) continue;
    CallEntry& entry = *calls_.Find(member.id);
    ++entry.workers_lost;
    if (batch.suspect && (outcome.crashed || entry.workers_lost > 1)) {
      DecideStatus(entry,
                   absl::InternalError(
                       base::Cat("this call was running when a worker of ", Name(),
                                 " died, and again, alone, when a second one died (",
                                 base::Message(outcome.status), "); it is not run once more")),
                   &Stats::lost);
    } else if (workers_.live() > 0 && !options_.stateful) {
      RunAgain(entry, true);
    } else {
      DecideStatus(entry,
                   absl::UnavailableError(base::Cat(
                       "the worker of ", Name(),
                       " died while it was running the call: ", base::Message(outcome.status))),
                   &Stats::lost);
    }
  }
}

void VersionQueue::RunAgain(CallEntry& entry, bool suspect) {
  ++stats_.second_runs;
  entry.batch = nullptr;
  entry.alone = true;
  if (suspect) {
    EnqueueSuspect(entry);
  } else {
    Enqueue(entry);
  }
}

void VersionQueue::EnqueueSuspect(CallEntry& entry) {
  entry.alone = true;
  entry.state = CallState::kQueued;
  entry.lane = nullptr;
  suspects_.push_back(entry.id);
}

// A worker died in this run. What waits and is as one of its calls waits with the suspects from now
// on, if that one has become suspect: among the others it would end the next worker, too. What is
// convicted is answered.
void VersionQueue::Suspect(const Batch& batch, bool crashed) {
  using Standing = PoisonList::Standing;
  const absl::Time now = timers_.Now();
  const auto note = [&](const Call& call) {
    if (crashed) {
      poison_.NoteCrash(call, batch.suspect, now);
    } else {
      poison_.NoteDeath(call, batch.suspect, now);
    }
  };
  for (const Batch::Member& member : batch.members) {
    if (member.id != 0) note(calls_.Find(member.id)->call);
  }
  for (const Call& call : batch.left) note(call);
  std::vector<CallId> found;
  for (const CallLane* lane : lanes_.active()) {
    for (const Pending& pending : lane->calls()) {
      CallEntry& entry = *calls_.Find(pending.id);
      const Standing standing = poison_.Find(entry.call, now);
      entry.noted = standing != Standing::kClean;
      if (standing == Standing::kSuspect || standing == Standing::kPoison) {
        found.push_back(pending.id);
      }
    }
  }
  for (const CallId id : found) {
    CallEntry& entry = *calls_.Find(id);
    Leave(entry);
    EnqueueSuspect(entry);
  }
  found.clear();
  for (const CallId id : suspects_) {
    const Call& call = calls_.Find(id)->call;
    if (poison_.Find(call, now) == Standing::kPoison) found.push_back(id);
  }
  for (const CallId id : found) {
    DecideStatus(*calls_.Find(id), PoisonError(), &Stats::refused_poison);
  }
}

// Calls that were only noted have shown that they do no harm.
void VersionQueue::NoteFineRun(const Batch& batch) {
  for (const Batch::Member& member : batch.members) {
    const CallEntry* entry = member.id == 0 ? nullptr : calls_.Find(member.id);
    if (entry != nullptr && entry->noted) poison_.Clear(entry->call);
  }
}

// Everybody has gone. A run that is about to end is let be; one that goes on and on would keep its
// executor from the others until the last deadline, of which there may be none for an hour.
void VersionQueue::OnAbandoned(const Batch& batch) {
  // Over already, or its worker is not ours any more.
  if (batch.listed == nullptr || batch.worker->removed) return;
  const absl::Time now = timers_.Now();
  const ServiceTime& service = policies_[static_cast<size_t>(batch.signature)].service();
  const auto usual = service.P95(std::max<int64_t>(1, batch.rows + batch.pad_rows));
  absl::Time kill_at = now + limits::kRunOverrun;
  if (usual.has_value() && !batch.joint) {
    const absl::Duration long_run = limits::kAbandonedTimes * *usual;
    kill_at = now + std::clamp(long_run, limits::kAbandonedMin, limits::kRunOverrun);
    kill_at = std::max(kill_at, batch.started + 2 * *usual);
  }
  batch.worker->worker->Abandon(batch.name, kill_at);
}

// The suspect did no harm. Those that wait only because they are as it was wait no longer.
void VersionQueue::ClearSuspect(const Batch& batch) {
  if (const CallEntry* entry = calls_.Find(batch.members.front().id); entry != nullptr) {
    poison_.Clear(entry->call);
  }
  for (const Call& call : batch.left) poison_.Clear(call);
  std::vector<CallId> clean;
  for (const CallId id : suspects_) {
    const CallEntry& entry = *calls_.Find(id);
    if (entry.workers_lost == 0 &&
        poison_.Find(entry.call, timers_.Now()) < PoisonList::Standing::kSuspect) {
      clean.push_back(id);
    }
  }
  for (const CallId id : clean) {
    CallEntry& entry = *calls_.Find(id);
    Leave(entry);
    entry.alone = false;
    Enqueue(entry);
  }
}

}  // namespace tensord::sched
