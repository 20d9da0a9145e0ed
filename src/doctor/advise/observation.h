// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "doctor/top/view.h"

namespace tensord::doctor {

// A GPU over the time that was watched.
struct GpuUse {
  std::string name = {};
  double utilisation = -1;  // Mean share; -1: not told.
  double memory = 0;        // Largest share.
  double throttled = 0;     // Share of the looks in which it was slowed down.
  std::string throttle_words = {};
};

// What several looks come to: what the advice is decided by.
struct Observation {
  int looks = 0;
  double seconds = 0;
  int cpus = 1;
  double cpu = 0;  // Mean shares, as the following.
  double cpu_wait = 0;
  double running = 0;        // Mean threads that run or want to.
  double pressure_cpu = -1;  // Mean percent; -1: not told.
  double pressure_io = -1;
  double memory = 0;  // Largest share in use.
  double swap_bytes = 0;
  double network_bytes = 0;  // A second, both ways.
  std::vector<GpuUse> gpus = {};
  std::vector<ModelRates> models = {};  // Means; the largest p99.
  std::vector<Rank> ranks = {};         // Means.
};

Observation Observe(const std::vector<View>& views);

// The lines that `tensord top --json` wrote. INVALID_ARGUMENT names the line that is none.
absl::StatusOr<std::vector<View>> ParseViews(std::string_view lines);

}  // namespace tensord::doctor
