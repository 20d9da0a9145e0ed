// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/segment_demand.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace tensord::fleet {

void SegmentDemand::Note(uint64_t request_bytes, uint64_t response_bytes, bool own,
                         absl::Time now) {
  TurnWindow(now);
  largest_.request_bytes = std::max(largest_.request_bytes, request_bytes);
  largest_.response_bytes = std::max(largest_.response_bytes, response_bytes);
  if (own) ++own_runs_;
}

// Room for all runs that can be out, in whole MiB. Runs that are too large for that keep segments
// of their own.
uint64_t SegmentDemand::Fitting(uint64_t run_bytes, uint64_t standard) const {
  constexpr uint64_t kStep = 1 << 20;
  // The allocator aligns each slot.
  const uint64_t all = (run_bytes + 64) * runs_max_;
  if (all <= standard || all > limits::kGrownSegmentBytesMax) return standard;
  return (all + kStep - 1) / kStep * kStep;
}

std::optional<SegmentSizes> SegmentDemand::Wanted(SegmentSizes have, absl::Time now) {
  TurnWindow(now);
  const SegmentSizes suited = {
      Fitting(std::max(largest_.request_bytes, largest_before_.request_bytes),
              standard_.request_bytes),
      Fitting(std::max(largest_.response_bytes, largest_before_.response_bytes),
              standard_.response_bytes)};
  const bool grow =
      suited.request_bytes > have.request_bytes || suited.response_bytes > have.response_bytes;
  if (grow && own_runs_ >= limits::kOwnRunsBeforeGrowth) {
    return SegmentSizes{std::max(suited.request_bytes, have.request_bytes),
                        std::max(suited.response_bytes, have.response_bytes)};
  }
  // A little too large does no harm.
  const bool shrink = suited.request_bytes * 2 <= have.request_bytes ||
                      suited.response_bytes * 2 <= have.response_bytes;
  if (shrink && !grow) return suited;
  return std::nullopt;
}

void SegmentDemand::Reset(absl::Time now) {
  own_runs_ = 0;
  TurnWindow(now);
}

void SegmentDemand::TurnWindow(absl::Time now) {
  if (now < window_began_ + limits::kGrownSegmentsIdle) return;
  const bool both = now >= window_began_ + 2 * limits::kGrownSegmentsIdle;
  largest_before_ = both ? Largest() : largest_;
  largest_ = {};
  own_runs_ = 0;
  window_began_ = now;
}

}  // namespace tensord::fleet
