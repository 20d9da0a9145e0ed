// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fleet/worker.h"

namespace tensord::sched {

// A worker as its queue sees it.
struct WorkerSlot {
  fleet::Worker* worker;
  int running = 0;       // Runs of ours that are out.
  bool lost = false;     // Is to be used no more: it died or was removed.
  bool died = false;     // A run of ours told so.
  bool removed = false;  // The owner took it away: `worker` may be gone.
};

// The workers of one version: who takes the next run. One of them can be kept quiet, so that a call
// suspected of killing workers runs where it can harm no other call.
class WorkerPool {
 public:
  void Add(fleet::Worker* worker);
  void Remove(fleet::Worker* worker);
  void RunStarted(WorkerSlot& slot);
  void RunEnded(WorkerSlot& slot);
  // No further runs for this one.
  void MarkLost(WorkerSlot& slot);

  // A worker with an idle executor, that with most of them, the quiet one left out; nullptr when
  // there is none.
  WorkerSlot* PickIdle() const;
  // A worker that takes a run although its executors are busy: the run is staged there.
  WorkerSlot* PickStaging() const;
  // Chooses the quiet one if there is none yet. It is returned once nothing runs there and it takes
  // a run; nullptr before.
  WorkerSlot* PickQuiet();
  void EndQuiet() { quiet_ = nullptr; }

  int64_t live() const;
  // Executors that have no run.
  int64_t idle() const;
  // Runs that are made at once when there are enough.
  int64_t executors() const;

 private:
  void DropUnused();

  std::vector<std::unique_ptr<WorkerSlot>> slots_;  // Removed ones stay while runs are out.
  WorkerSlot* quiet_ = nullptr;
};

}  // namespace tensord::sched
