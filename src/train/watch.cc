// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/watch.h"

#include <algorithm>

#include "base/text.h"

namespace tensord::train {
namespace {

std::string Seconds(absl::Duration time) { return base::Cat(absl::ToInt64Seconds(time), " s"); }

// Of a rank that did not move for so long, and whose group, if it has one, did not either.
// `most`: steps that any rank made.
std::optional<Stuck> Judge(const RankView& rank, absl::Duration quiet, int64_t most,
                           const WatchLimits& limits) {
  const absl::Duration limit = rank.steps == 0 ? limits.start : limits.step;
  if (limit <= absl::ZeroDuration() || quiet < limit) return std::nullopt;
  if (rank.steps > 0) {
    return Stuck{.rank = rank.rank,
                 .why = base::Cat("made no step for ", Seconds(quiet), " (its ", rank.steps,
                                  ", the most of any ", most,
                                  "); where one call of a tf.function trains longer than that, as "
                                  "with many steps_per_execution, give --hang-timeout more, or 0")};
  }
  return Stuck{
      .rank = rank.rank,
      .why = base::Cat("has not made its first step, and ",
                       rank.alone ? "did not move" : "no rank moved", " for ", Seconds(quiet),
                       most > 0 ? base::Cat(" (others made ", most, ")") : std::string()),
      .perhaps_at_work = most == 0 && !limits.without_steps};
}

}  // namespace

std::optional<Stuck> FindStuck(std::span<const RankView> ranks, const WatchLimits& limits,
                               absl::Time now) {
  const RankView* slowest = nullptr;
  absl::Time last = absl::InfinitePast();
  int64_t most = 0;
  for (const RankView& rank : ranks) {
    if (now - rank.stopped_since >= limits.stopped) {
      return Stuck{
          .rank = rank.rank,
          .why = base::Cat("is stopped (SIGSTOP) for ", Seconds(now - rank.stopped_since))};
    }
    if (!rank.watched) continue;
    most = std::max(most, rank.steps);
    if (rank.alone) continue;
    last = std::max(last, rank.last_progress);
    if (slowest == nullptr || rank.steps < slowest->steps) slowest = &rank;
  }
  if (slowest != nullptr) return Judge(*slowest, now - last, most, limits);
  for (const RankView& rank : ranks) {
    if (!rank.watched || !rank.alone) continue;
    if (auto stuck = Judge(rank, now - rank.last_progress, most, limits)) return stuck;
  }
  return std::nullopt;
}

}  // namespace tensord::train
