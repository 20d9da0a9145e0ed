// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "sched/call.h"
#include "sched/service_time.h"

// What to run now: the whole batching policy, as a function of its arguments.
namespace tensord::sched {

// A waiting call, as far as the plan cares.
struct Pending {
  CallId id = 0;
  int64_t rows = 1;    // As Call's; what runs alone may have 0 or -1.
  uint64_t bytes = 0;  // Of its inputs.
  tensor::Criticality criticality = tensor::Criticality::kCritical;
  absl::Time arrived = {};
  absl::Time due = {};  // DueTime(turn, deadline): the place in the queue.
  absl::Time deadline = absl::InfiniteFuture();
  bool trial = false;  // Runs even where no run has been short enough for it lately.
};

// A call that could wait long is served as if it could wait kPatienceMax: ahead of newer, more
// urgent ones in the end, so that it does not starve behind a stream of them. `turn`: when it would
// be its client's turn, at its arrival or later.
absl::Time DueTime(absl::Time turn, absl::Time deadline);

// The order of service: by class, then earliest due, then first come.
bool Before(const Pending& a, const Pending& b);

// What one batch may be.
struct BatchLimits {
  bool together = true;                        // False: every call runs alone.
  int64_t rows_max = 1;                        // A single call may have more.
  uint64_t bytes_max = 0;                      // Likewise.
  absl::Duration wait_max = {};                // Operator's batch timeout; zero: never wait.
  std::span<const int64_t> allowed_rows = {};  // Ascending; empty: any.
};

// Calls that may share a run, in the order of service.
struct Lane {
  std::span<const Pending> calls = {};
  BatchLimits limits;
  const ServiceTime* service = nullptr;  // Null: nothing is known.
};

struct PlanRules {
  bool closing = false;  // The queue drains: no waiting for more calls.
  // Calls have been dying in the queue. Where no run times are known, serve the newest first then;
  // where they are, the order of service keeps its promises and this is of no use: the old would
  // die after they were admitted.
  bool newest_first = false;
};

struct BatchPlan {
  size_t lane = 0;                    // Whose calls these are.
  std::vector<CallId> hopeless = {};  // Answer these DEADLINE_EXCEEDED: they cannot finish in time.
  // Run these together. Empty means wait or, where calls are hopeless, plan again without them.
  std::vector<CallId> batch = {};
  int64_t rows = 0;      // Of the batch, without padding; that of the call if it is one.
  int64_t pad_rows = 0;  // To reach an allowed size.
  absl::Time wake = absl::InfiniteFuture();  // When waiting, plan again by then.
};

// Looks at what waits and says what a free executor should do now.
// REQUIRES: each lane is sorted by Before; no deadline lies before now.
BatchPlan PlanBatch(std::span<const Lane> lanes, PlanRules rules, absl::Time now);

// The shortest that a run of so many rows has taken lately, padded as it will be; nullopt while
// that is not known.
std::optional<absl::Duration> LeastRun(const ServiceTime& service, int64_t rows,
                                       std::span<const int64_t> allowed_rows);

// Rows to add so that a batch has one of the allowed sizes; 0 above the largest.
int64_t PadRows(int64_t rows, std::span<const int64_t> allowed_rows);

}  // namespace tensord::sched
