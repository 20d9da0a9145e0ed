// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "sched/service_time.h"

namespace tensord::sched {

// What a queue knows about one signature.
struct SignatureStats {
  bool batches = false;           // Calls may share a run.
  bool refused_batching = false;  // It looked batchable, but a batch showed that it is not.
  int64_t rows_cap = 0;           // The batch size that the queue works towards now.
  int64_t samples = 0;            // Runs that the service-time model has seen.
  // The model S(b) = fixed + per_row * b, as learnt; zero before there are samples.
  absl::Duration fixed = {};
  absl::Duration per_row = {};
  std::vector<RunTimeHint> run_times = {};  // By size, as learnt; for whoever serves it next.
};

// Counters only grow; a call is in `submitted` and later in exactly one of the "ends".
struct Stats {
  // Now.
  int64_t queued_calls = 0;
  uint64_t queued_bytes = 0;
  int64_t running_calls = 0;  // Of which somebody still waits.
  int64_t running_runs = 0;   // Runs that are out, also those that nobody waits for.
  int64_t workers = 0;        // Of them, not known to be dead.

  int64_t submitted = 0;
  // Ends.
  int64_t answered = 0;  // By the model: OK or its error.
  int64_t cancelled = 0;
  int64_t expired_queued = 0;   // Deadline passed before it ran.
  int64_t expired_running = 0;  // Deadline passed while it ran.
  int64_t hopeless = 0;         // Left the queue because it could not finish in time any more.
  int64_t refused_full = 0;     // Queue full (calls, bytes or max_enqueued_batches).
  int64_t refused_late = 0;     // Could not have finished in time.
  int64_t refused_shed = 0;     // A retry or a sheddable call under pressure.
  int64_t refused_share = 0;    // Its client asks for more than its share, under pressure.
  int64_t refused_poison = 0;   // Such a call has ended two workers.
  int64_t refused_early = 0;    // Not an end: of those above, refused before the body was read.
  int64_t refused_other = 0;    // Over max_batch_size, or the version is gone.
  int64_t lost = 0;             // A worker died with it (UNAVAILABLE, INTERNAL).
  int64_t failed_all = 0;       // By FailAll.

  uint64_t received_bytes = 0;  // Of all calls, as Call has it.
  int64_t runs = 0;
  int64_t run_calls = 0;
  int64_t run_rows = 0;
  int64_t pad_rows = 0;
  int64_t second_runs = 0;  // Calls that ran again alone: after a batch's error or a lost worker.
  int64_t workers_lost = 0;
  absl::Duration run_time = {};
  // Of it, what was for callers who had gone when the run ended: of each run the part of its calls.
  absl::Duration wasted_run_time = {};

  std::vector<SignatureStats> signatures = {};  // As in QueueOptions.
};

}  // namespace tensord::sched
