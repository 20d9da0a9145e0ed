// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "sched/call.h"
#include "sched/worker_pool.h"

namespace tensord::sched {

// One run that is out, and the calls in it.
//
// Owns: the inputs of calls that were answered or cancelled before the run ended.
// Lifetime: lives in the callback that the worker holds, so it survives the queue; `listed` then
// leads nowhere.
struct Batch {
  struct Member {
    CallId id;  // 0: nobody waits for it any more.
    int64_t rows;
  };

  Batch() = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    if (listed != nullptr) std::erase(*listed, this);
  }

  std::vector<Batch*>* listed = nullptr;  // The queue's list of running batches; null: it is gone.
  WorkerSlot* worker = nullptr;
  int signature = 0;
  bool joint = false;  // More signatures run with it: its times say nothing of this one.
  std::vector<Member> members;
  int64_t waiting = 0;  // Members with an id.
  int64_t rows = 0;     // Without padding; 0 or -1 for a call that has none.
  int64_t pad_rows = 0;
  bool together = false;  // Calls may share this run: the outputs have its rows.
  bool suspect = false;   // A lone call, on a worker with nothing else to do.
  absl::Time started;
  uint64_t name = 0;  // As its worker knows it.
  // Of members that nobody waits for any more: signature, inputs, and who owns them.
  std::vector<Call> left;
  std::vector<std::shared_ptr<const void>> keeps;  // Of what was made for the run.
};

}  // namespace tensord::sched
