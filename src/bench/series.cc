// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/series.h"

#include <utility>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::bench {
namespace {

absl::Status Measure(Point point, const SeriesProgress& progress, Series* series) {
  ProgressCallback callback;
  if (progress) {
    callback = [&](const Progress& second) { progress(point.title, second); };
  }
  ASSIGN_OR_RETURN(point.result, RunLoad(point.plan, callback));
  series->points.push_back(std::move(point));
  return absl::OkStatus();
}

LoadPlan AtRate(const LoadPlan& plan, double rate) {
  LoadPlan at = plan;
  at.rate = rate;
  return at;
}

}  // namespace

uint64_t Series::answered() const {
  uint64_t sum = 0;
  for (const Point& point : points) sum += point.result.tally.answered;
  return sum;
}

uint64_t Series::failed() const {
  uint64_t sum = 0;
  for (const Point& point : points) sum += point.result.tally.failed;
  return sum;
}

bool Series::ended_early() const {
  return !points.empty() && !points.back().result.ended_early.empty();
}

absl::StatusOr<Series> RunSeries(const SeriesPlan& plan, const SeriesProgress& progress) {
  Series series{.mode = plan.mode, .points = {}};
  if (plan.mode == SeriesMode::kOne) {
    RETURN_IF_ERROR(Measure({.plan = plan.load}, progress, &series));
    return series;
  }
  for (const double rate : plan.rates) {
    if (series.ended_early()) return series;
    RETURN_IF_ERROR(Measure({.title = base::Cat(rate, "/s"), .plan = AtRate(plan.load, rate)},
                            progress, &series));
  }
  if (plan.mode != SeriesMode::kOverload) return series;
  RETURN_IF_ERROR(Measure({.title = "capacity", .plan = plan.closed}, progress, &series));
  series.capacity = series.points.back().result.rate();
  if (series.capacity <= 0 && !series.ended_early()) {
    return absl::FailedPreconditionError(
        "nothing was answered while the capacity was measured: give more --seconds");
  }
  for (const double factor : plan.factors) {
    if (series.ended_early()) return series;
    RETURN_IF_ERROR(Measure({.title = base::Cat(factor, " x capacity"),
                             .factor = factor,
                             .plan = AtRate(plan.load, factor * series.capacity)},
                            progress, &series));
  }
  return series;
}

}  // namespace tensord::bench
