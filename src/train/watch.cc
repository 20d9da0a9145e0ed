// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/watch.h"

#include <algorithm>

#include "base/text.h"

namespace tensord::train {
namespace {

std::string Seconds(absl::Duration time) { return base::Cat(absl::ToInt64Seconds(time), " s"); }

}  // namespace

std::optional<Stuck> FindStuck(std::span<const RankView> ranks, const WatchLimits& limits,
                               absl::Time now) {
  const RankView* slowest = nullptr;
  absl::Time last = absl::InfinitePast();
  int64_t most = 0;
  for (const RankView& rank : ranks) {
    if (now - rank.stopped_since >= limits.stopped) {
      return Stuck{rank.rank,
                   base::Cat("is stopped (SIGSTOP) for ", Seconds(now - rank.stopped_since))};
    }
    if (!rank.watched) continue;
    last = std::max(last, rank.last_progress);
    most = std::max(most, rank.steps);
    if (slowest == nullptr || rank.steps < slowest->steps) slowest = &rank;
  }
  if (slowest == nullptr) return std::nullopt;
  const absl::Duration quiet = now - last;
  const absl::Duration limit = slowest->steps == 0 ? limits.start : limits.step;
  if (limit <= absl::ZeroDuration() || quiet < limit) return std::nullopt;
  if (slowest->steps == 0) {
    return Stuck{slowest->rank,
                 base::Cat("has not made its first step, and no rank moved for ", Seconds(quiet),
                           most > 0 ? base::Cat(" (others made ", most, ")") : std::string())};
  }
  return Stuck{slowest->rank, base::Cat("made no step for ", Seconds(quiet), " (its ",
                                        slowest->steps, ", the most of any ", most, ")")};
}

}  // namespace tensord::train
