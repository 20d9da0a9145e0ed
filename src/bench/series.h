// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load.h"
#include "bench/plan.h"

namespace tensord::bench {

// What is measured: one load; open loops at several rates; or the capacity, and then multiples of
// it.
enum class SeriesMode { kOne, kRates, kOverload };

struct SeriesPlan {
  SeriesMode mode = SeriesMode::kOne;
  LoadPlan load = {};                // kOne. Otherwise its pacing is the open loops'.
  LoadPlan closed = {};              // kOverload: finds the capacity.
  std::vector<double> rates = {};    // kRates.
  std::vector<double> factors = {};  // kOverload.
};

struct Point {
  std::string title = {};  // "500/s", "2 x capacity"; empty for the only one.
  double factor = 0;       // kOverload: of the capacity.
  LoadPlan plan = {};
  LoadResult result = {};
};

struct Series {
  SeriesMode mode = SeriesMode::kOne;
  double capacity = 0;  // kOverload: answered a second by the closed loop, without deadlines.
  std::vector<Point> points = {};  // kOverload: the first is the closed loop.

  uint64_t answered() const;
  uint64_t failed() const;
  bool ended_early() const;
};

// Ends with the point that ended early. `progress` also gets the point's title.
using SeriesProgress = std::function<void(const std::string& title, const Progress&)>;
absl::StatusOr<Series> RunSeries(const SeriesPlan& plan, const SeriesProgress& progress);

}  // namespace tensord::bench
