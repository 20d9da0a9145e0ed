// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/plan_batch.h"

#include <algorithm>
#include <optional>

#include "base/limits.h"

namespace tensord::sched {
namespace {

// A batch being filled from one lane, call by call.
struct Filling {
  const Lane* lane = nullptr;
  std::vector<CallId> batch = {};
  int64_t rows = 0;
  uint64_t bytes = 0;
  absl::Time oldest = absl::InfiniteFuture();    // Arrival.
  absl::Time tightest = absl::InfiniteFuture();  // Deadline.
  bool full = false;                             // No further call fits.

  bool Fits(const Pending& call) const {
    if (batch.empty()) return true;
    const BatchLimits& limits = lane->limits;
    return limits.together && rows + call.rows <= limits.rows_max &&
           bytes + call.bytes <= limits.bytes_max;
  }
  void Take(const Pending& call) {
    batch.push_back(call.id);
    rows += call.rows;
    bytes += call.bytes;
    oldest = std::min(oldest, call.arrived);
    tightest = std::min(tightest, call.deadline);
    full = !lane->limits.together || rows >= lane->limits.rows_max;
  }
};

// When a run of so many rows, padded, that starts now ends; the infinite past while nothing is
// known.
absl::Time FinishOf(const Lane& lane, int64_t rows, absl::Time now) {
  if (lane.service == nullptr) return absl::InfinitePast();
  rows = std::max<int64_t>(1, rows);
  const auto mean = lane.service->Mean(rows + PadRows(rows, lane.limits.allowed_rows));
  return mean.has_value() ? now + *mean : absl::InfinitePast();
}

// The same for a run that takes as long as nearly all do at most.
absl::Time LastFinishOf(const Lane& lane, int64_t rows, absl::Time now) {
  if (lane.service == nullptr) return absl::InfinitePast();
  rows = std::max<int64_t>(1, rows);
  const auto p95 = lane.service->P95(rows + PadRows(rows, lane.limits.allowed_rows));
  return p95.has_value() ? now + *p95 : absl::InfinitePast();
}

// The same for a run as short as any lately.
absl::Time EarliestFinishOf(const Lane& lane, int64_t rows, absl::Time now) {
  if (lane.service == nullptr) return absl::InfinitePast();
  const auto least = LeastRun(*lane.service, rows, lane.limits.allowed_rows);
  return least.has_value() ? now + *least : absl::InfinitePast();
}

// True when the calls of the head's class alone fill more than one batch.
bool Crowded(const Lane& lane) {
  if (!lane.limits.together) return false;
  int64_t rows = 0;
  for (const Pending& call : lane.calls) {
    if (call.criticality != lane.calls.front().criticality) return false;
    rows += call.rows;
    if (rows > lane.limits.rows_max) return true;
  }
  return false;
}

// Newest first, from the head's class: when more dies in the queue than is served, those who came
// last can still be saved.
Filling FillNewestFirst(const Lane& lane) {
  Filling filling{.lane = &lane};
  std::vector<const Pending*> candidates;
  for (const Pending& call : lane.calls) {
    if (call.criticality != lane.calls.front().criticality) break;
    candidates.push_back(&call);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Pending* a, const Pending* b) { return a->arrived > b->arrived; });
  for (const Pending* call : candidates) {
    if (filling.full) break;
    if (!filling.Fits(*call)) {
      filling.full = true;
      break;
    }
    filling.Take(*call);
  }
  return filling;
}

// In the order of service. A call that would be late in a batch of this size does not slow the
// rest: while more than one batch waits, full batches go before late calls (else everybody ends up
// at the edge of his deadline and most behind it); otherwise the batch stays small enough for its
// members.
Filling FillInOrder(const Lane& lane, absl::Time now, bool crowded, std::vector<CallId>* hopeless) {
  Filling filling{.lane = &lane};
  const absl::Time full_finish =
      crowded ? LastFinishOf(lane, lane.limits.rows_max, now) : absl::InfinitePast();
  for (const Pending& call : lane.calls) {
    if (filling.full) break;
    if (FinishOf(lane, call.rows, now) > call.deadline) {
      hopeless->push_back(call.id);
      continue;
    }
    if (full_finish > call.deadline) continue;  // It keeps its place, and its chance.
    if (!filling.Fits(call)) {
      filling.full = true;
      break;
    }
    if (!filling.batch.empty() && !crowded) {
      const absl::Time finish = LastFinishOf(lane, filling.rows + call.rows, now);
      if (finish > std::min(filling.tightest, call.deadline)) break;
    }
    filling.Take(call);
  }
  return filling;
}

// In the order of service, of calls that an ordinary run would be too long for, those that a run as
// short as any lately would still be in time for, and trials.
Filling FillWithChances(const Lane& lane, absl::Time now, std::vector<CallId>* hopeless) {
  Filling filling{.lane = &lane};
  for (const Pending& call : lane.calls) {
    if (filling.full) break;
    if (!call.trial && EarliestFinishOf(lane, call.rows, now) > call.deadline) {
      hopeless->push_back(call.id);
      continue;
    }
    if (!filling.Fits(call)) {
      filling.full = true;
      break;
    }
    if (!filling.batch.empty() && EarliestFinishOf(lane, filling.rows + call.rows, now) >
                                      std::min(filling.tightest, call.deadline)) {
      break;
    }
    filling.Take(call);
  }
  return filling;
}

Filling Fill(const Lane& lane, PlanRules rules, absl::Time now, std::vector<CallId>* hopeless) {
  const bool known = lane.service != nullptr && lane.service->Mean(1).has_value();
  if (rules.newest_first && !known) return FillNewestFirst(lane);
  const bool crowded = Crowded(lane);
  Filling filling = FillInOrder(lane, now, crowded, hopeless);
  if (filling.batch.empty() && crowded) {
    hopeless->clear();
    filling = FillInOrder(lane, now, false, hopeless);
  }
  if (!filling.batch.empty()) return filling;
  // Nothing would be in time in an ordinary run. The executor is free, and only runs can prove what
  // we know wrong: what has a chance runs nevertheless.
  hopeless->clear();
  return FillWithChances(lane, now, hopeless);
}

// When this batch leaves: at once, except where an operator wants part-full ones to wait for more;
// then so early that its members still make it, as far as is known.
absl::Time LeaveTime(const Filling& filling, PlanRules rules) {
  if (filling.batch.empty()) return absl::InfinitePast();  // All that waits here is hopeless.
  const BatchLimits& limits = filling.lane->limits;
  if (filling.full || rules.closing || limits.wait_max <= absl::ZeroDuration()) {
    return absl::InfinitePast();
  }
  absl::Time leave = filling.oldest + limits.wait_max;
  if (filling.lane->service == nullptr) return leave;
  const auto run = filling.lane->service->P95(std::max<int64_t>(1, filling.rows));
  return run.has_value() ? std::min(leave, filling.tightest - *run) : leave;
}

}  // namespace

absl::Time DueTime(absl::Time turn, absl::Time deadline) {
  return std::min(deadline, turn + limits::kPatienceMax);
}

bool Before(const Pending& a, const Pending& b) {
  if (a.criticality != b.criticality) return a.criticality < b.criticality;
  if (a.due != b.due) return a.due < b.due;
  return a.arrived < b.arrived;
}

int64_t PadRows(int64_t rows, std::span<const int64_t> allowed_rows) {
  const auto at = std::lower_bound(allowed_rows.begin(), allowed_rows.end(), rows);
  return at == allowed_rows.end() ? 0 : *at - rows;
}

std::optional<absl::Duration> LeastRun(const ServiceTime& service, int64_t rows,
                                       std::span<const int64_t> allowed_rows) {
  rows = std::max<int64_t>(1, rows);
  return service.Least(rows + PadRows(rows, allowed_rows));
}

BatchPlan PlanBatch(std::span<const Lane> lanes, PlanRules rules, absl::Time now) {
  BatchPlan plan;
  const Pending* best = nullptr;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const Lane& lane = lanes[i];
    if (lane.calls.empty()) continue;
    if (best != nullptr && !Before(lane.calls.front(), *best)) continue;
    std::vector<CallId> hopeless;
    Filling filling = Fill(lane, rules, now, &hopeless);
    const absl::Time leave = LeaveTime(filling, rules);
    if (leave > now) {
      plan.wake = std::min(plan.wake, leave);
      continue;
    }
    best = &lane.calls.front();
    plan.lane = i;
    plan.hopeless = std::move(hopeless);
    plan.batch = std::move(filling.batch);
    plan.rows = filling.rows;
  }
  if (best == nullptr) return plan;
  const BatchLimits& limits = lanes[plan.lane].limits;
  if (plan.rows > 0) plan.pad_rows = PadRows(plan.rows, limits.allowed_rows);
  return plan;
}

}  // namespace tensord::sched
