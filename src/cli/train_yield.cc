// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/train_yield.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "doctor/top/metrics_page.h"

namespace tensord::cli {

train::YieldSetup YieldOf(const TrainOptions& options) {
  const auto read = [before = std::optional<doctor::ServerCounters>()](
                        std::string_view page) mutable -> absl::StatusOr<train::Pressure> {
    ASSIGN_OR_RETURN(doctor::ServerCounters now, doctor::ParseMetrics(page));
    train::Pressure pressure;
    // The queue is as of now and p99 does not depend on the time between the pages.
    for (const auto& rates : doctor::RatesOf(before.value_or(now), now, 1)) {
      pressure.queue_calls += rates.queue;
      pressure.p99_milliseconds =
          std::max(pressure.p99_milliseconds, rates.p99_microseconds / 1000);
    }
    before = std::move(now);
    return pressure;
  };
  return {.address = options.yield_to,
          .queue_calls_max = options.yield_queue,
          .p99_milliseconds_max = options.yield_p99_ms,
          .read = read};
}

}  // namespace tensord::cli
