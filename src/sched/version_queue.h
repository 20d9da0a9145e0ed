// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fleet/worker.h"
#include "loop/timers.h"
#include "sched/admission.h"
#include "sched/batch.h"
#include "sched/call.h"
#include "sched/call_lanes.h"
#include "sched/call_table.h"
#include "sched/poison_list.h"
#include "sched/queue_options.h"
#include "sched/signature_policy.h"
#include "sched/stats.h"
#include "sched/worker_pool.h"

namespace tensord::sched {

// The scheduler of one model version: from "a call arrived" to "its answer", over the workers that
// serve the version. It keeps the calls, asks PlanBatch what to run now, and splits the results.
//
// Every call is answered exactly once, or was cancelled: with the model's answer, at its deadline
// (even while the model runs), at once when it is refused, or by FailAll.
// Threads: the version's home loop only.
// Lifetime: `timers` outlives the queue; workers stay until removed. The queue may go at any time,
// also inside a `done`: calls that are still in it are then dropped without an answer (FailAll
// first), and runs that are out keep their inputs alive by themselves.
class VersionQueue {
 public:
  VersionQueue(loop::Timers& timers, QueueOptions options);
  ~VersionQueue();
  VersionQueue(const VersionQueue&) = delete;
  VersionQueue& operator=(const VersionQueue&) = delete;

  // Queues the call and hands it to a free worker at once if there is one. A refusal, too, comes
  // through `done`, later.
  // REQUIRES: call.signature is one of the options', with as many inputs; done is set.
  CallId Submit(Call call);
  // Likewise, but no worker gets it before Dispatch, or whatever else makes the queue look: calls
  // that came together can then run together.
  CallId Add(Call call);
  void Dispatch();
  // Something was added since the last Dispatch.
  bool waits_for_dispatch() const { return waits_for_dispatch_; }
  // The same decision before the call's inputs are there: why it would be refused now, for lack of
  // room or time, whatever is in it; nullopt when it would not. What is refused here is counted.
  std::optional<CallResult> RefuseEarly(const EarlyCall& call);
  // Where a call of so many bytes may be received, when nothing waits here and an executor is idle:
  // it will then most likely run alone, and soon. Empty otherwise.
  fleet::ReceivePlace LeaseForReceive(uint64_t bytes);
  // Nobody waits for this call any longer; its `done` will not run. Queued: it is gone. Running:
  // what comes out is dropped. Does nothing for a call that was answered.
  void Cancel(CallId id);

  // REQUIRES: not added yet, ready for runs.
  void AddWorker(fleet::Worker* worker);
  // No more runs for this one; those that are out may still be answered by it. Does nothing for an
  // unknown worker.
  void RemoveWorker(fleet::Worker* worker);
  // A worker's Free() may have grown.
  void OnWorkerFree();

  // How long runs took elsewhere, to begin with. Hints about signatures that are none are left out.
  void Seed(std::span<const RunTimeHint> hints);

  // Runs `done` once, from a timer, when no call waits for an answer. Calls that still arrive until
  // then are served; afterwards they are answered UNAVAILABLE. `done` may destroy the queue.
  void Drain(loop::Task done);
  // Answers every call, queued or running, with `status`, inside this call.
  void FailAll(const absl::Status& status);

  Stats stats() const;

 private:
  struct Answer {
    CallId id;
    CallResult result;
  };
  using End = int64_t Stats::*;  // Which counter a call ends in.

  // Admission: OK, or why the call is refused.
  struct Refusal {
    absl::Status status = {};
    absl::Duration retry_after = {};
    End end = nullptr;   // Null: admitted.
    bool trial = false;  // Admitted as one.
  };
  absl::Status PoisonError() const;
  Refusal RefuseByContent(PoisonList::Standing standing) const;
  Refusal Refuse(const Call& call, uint64_t bytes);
  Refusal RefuseHopeless(const Call& call);
  Refusal RefuseByLoad(const Applicant& call, const std::optional<Forecast>& forecast) const;
  Refusal LateRefusal(const Forecast& forecast, absl::Time deadline, absl::Duration after) const;
  Refusal RefuseByBytes(uint64_t bytes);
  Refusal RefuseByBatches(const Call& call);
  std::optional<Forecast> ForecastOf(const Call& call);
  absl::Duration CostOf(const Call& call, uint64_t bytes) const;
  absl::Duration WorkBefore(const Pending& call) const;
  CallLane& LaneOf(const Call& call, bool is_piece);
  bool Pads() const;
  void LimitPadding(BatchPlan* plan);
  void ShareOut(int64_t rows, const SignaturePolicy& policy, BatchLimits* limits) const;
  void Enqueue(CallEntry& entry);
  void EnqueueSuspect(CallEntry& entry);
  void SubmitPieces(CallEntry& entry, int64_t rows_max);
  void OnPiece(CallId parent, size_t piece, CallResult result);

  // Running.
  void Pump();
  void Expire(CallEntry& entry);
  void DropHopeless(const std::vector<CallId>& ids);
  void RunSuspects();
  WorkerSlot* PickWorker();
  bool RunNext();
  void Run(WorkerSlot& slot, std::span<const CallId> ids, const Lane* lane, int64_t pad_rows);
  void OnOutcome(std::unique_ptr<Batch> batch, fleet::RunOutcome outcome);
  void AfterOutputs(Batch& batch, fleet::RunOutcome& outcome);
  void AfterError(Batch& batch, const absl::Status& status, bool again);
  void AfterLoss(Batch& batch, const fleet::RunOutcome& outcome);
  void RunAgain(CallEntry& entry, bool suspect);
  void Suspect(const Batch& batch, bool crashed);
  void NoteFineRun(const Batch& batch);
  void OnAbandoned(const Batch& batch);
  void ClearSuspect(const Batch& batch);
  void CountRun(const Batch& batch, const fleet::RunOutcome& outcome);

  // Ending calls.
  void Leave(CallEntry& entry);
  void Decide(CallEntry& entry, CallResult result, End end);
  void DecideStatus(CallEntry& entry, absl::Status status, End end);
  void Deliver();
  void Settle();
  void ArmTimer();
  void CheckDrained();
  void OnDrainTimer();
  void NoteDeathInQueue();
  bool NewestFirst() const;
  std::string Name() const;

  loop::Timers& timers_;
  QueueOptions options_;
  const std::shared_ptr<bool> alive_;  // False once destroyed; a callback may do that.

  std::vector<SignaturePolicy> policies_;  // By signature.
  std::array<FairShare, 4> fair_;          // By criticality.
  CallTable calls_;
  CallLanes lanes_;
  // Were in a worker when it died, or are as one that was; run one by one.
  std::vector<CallId> suspects_;
  PoisonList poison_;
  WorkerPool workers_;
  std::vector<Batch*> running_;  // Owned by the workers' callbacks.
  uint64_t last_run_ = 0;        // Its name.
  std::vector<Answer> answers_;  // Decided, not yet delivered.
  size_t answers_delivered_ = 0;
  std::vector<Lane> plan_lanes_;  // Scratch.

  bool pumping_ = false;
  bool waits_for_dispatch_ = false;
  int delivering_ = 0;  // Deliver calls on the stack.
  bool suspect_out_ = false;
  absl::Time wake_ = absl::InfiniteFuture();  // A part-full batch leaves then.
  loop::TimerId timer_ = 0;
  absl::Time timer_at_;
  absl::Time death_last_ = absl::InfinitePast();  // Of a call in the queue.
  absl::Time deaths_since_ = absl::InfinitePast();

  loop::Task drained_;
  loop::TimerId drain_timer_ = 0;
  bool draining_ = false;
  bool closed_ = false;  // Drained: takes no more calls.
  Stats stats_;
};

}  // namespace tensord::sched
