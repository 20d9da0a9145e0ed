// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <span>
#include <string>

#include "absl/time/time.h"

// Whether a rank hangs. Pure.
namespace tensord::train {

struct WatchLimits {
  absl::Duration start = absl::Minutes(10);  // To the first step; zero: no limit.
  absl::Duration step = absl::Minutes(10);   // From one sign of progress to the next; zero: none.
  // Where nobody was ever seen to make a step, silence may be work that is not counted: it ends the
  // job only where somebody asked for a limit.
  bool without_steps = true;
  absl::Duration stopped = absl::Seconds(10);  // In the state that SIGSTOP brings.
};

// What is known of a rank that runs.
struct RankView {
  int rank = 0;
  bool watched = true;  // Servers only wait, and may.
  bool alone = false;   // It waits for no other rank.
  int64_t steps = 0;
  absl::Time started = {};
  absl::Time last_progress = {};  // A step or a line of output, or the start.
  absl::Time stopped_since = absl::InfiniteFuture();
};

struct Stuck {
  int rank = 0;
  std::string why = {};          // Behind its name: "made no step for 30 s (…)".
  bool perhaps_at_work = false;  // To be said, not to be ended.
};

// The rank to blame, if any: a stopped one, else the one with the fewest steps once nobody makes
// progress. All ranks of a group wait for the slowest, so one that moves clears the others; those
// that are alone are judged each by itself.
std::optional<Stuck> FindStuck(std::span<const RankView> ranks, const WatchLimits& limits,
                               absl::Time now);

}  // namespace tensord::train
