// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "bench/plan.h"

namespace tensord::bench {

// How a measurement goes on, once a second.
struct Progress {
  absl::Duration passed;
  SecondSummary second;
  uint64_t answered = 0;  // Until now.
  uint64_t failed = 0;
};
using ProgressCallback = std::function<void(const Progress&)>;

// Runs the load in threads of its own; `progress` is called in this one. Ctrl-C ends the
// measurement early, a second one the program. UNAVAILABLE when nobody listens.
absl::StatusOr<LoadResult> RunLoad(const LoadPlan& plan, const ProgressCallback& progress);

}  // namespace tensord::bench
