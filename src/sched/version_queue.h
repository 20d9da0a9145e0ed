// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "fleet/worker.h"
#include "loop/timers.h"
#include "sched/call.h"
#include "sched/queue_options.h"
#include "sched/stats.h"

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

  // Runs `done` once, from a timer, when no call waits for an answer. Calls that still arrive until
  // then are served; afterwards they are answered UNAVAILABLE. `done` may destroy the queue.
  void Drain(loop::Task done);
  // Answers every call, queued or running, with `status`, inside this call.
  void FailAll(absl::Status status);

  Stats stats() const;
};

}  // namespace tensord::sched
