// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/admission.h"

#include <algorithm>

namespace tensord::sched {
namespace {

// The answer still has to reach the client, and forecasts err: a tenth of the client's time, at
// most kMarginMax.
constexpr double kMarginShare = 0.1;
constexpr absl::Duration kMarginMax = absl::Milliseconds(50);
// A hint below a millisecond only makes clients spin; above a few seconds it outlives its reason.
constexpr absl::Duration kRetryAfterMin = absl::Milliseconds(1);
constexpr absl::Duration kRetryAfterMax = absl::Seconds(5);
constexpr absl::Duration kRetryAfterUnknown = absl::Milliseconds(100);

absl::Duration RetryAfter(const std::optional<Forecast>& forecast) {
  if (!forecast.has_value()) return kRetryAfterUnknown;
  return std::clamp(forecast->wait, kRetryAfterMin, kRetryAfterMax);
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 1; }

// How much of its remaining time the call would spend here; above 1 it would be late.
double TimePressure(const Applicant& call, const Forecast& forecast, absl::Time now) {
  if (call.deadline == absl::InfiniteFuture()) return 0;
  const absl::Duration margin = std::min(kMarginShare * (call.deadline - call.arrived), kMarginMax);
  const absl::Duration left = call.deadline - margin - now;
  if (left <= absl::ZeroDuration()) return 2;
  return absl::FDivDuration(forecast.wait + forecast.run, left);
}

}  // namespace

double PressureMax(tensor::Criticality criticality, bool retry) {
  switch (criticality) {
    case tensor::Criticality::kCriticalPlus:
      return 1;  // Also its retries: somebody said that it matters most.
    case tensor::Criticality::kCritical:
      return retry ? 0.5 : 1;
    case tensor::Criticality::kSheddablePlus:
      return retry ? 0.5 : 0.75;
    case tensor::Criticality::kSheddable:
      return 0.5;
  }
  return 1;
}

Admission Admit(const Applicant& call, const Fullness& queue,
                const std::optional<Forecast>& forecast, absl::Time now) {
  if (queue.calls == 0) return {};
  if (queue.calls >= queue.calls_max || queue.bytes + call.bytes > queue.bytes_max) {
    return {Verdict::kFull, RetryAfter(forecast)};
  }
  const double time_pressure = forecast.has_value() ? TimePressure(call, *forecast, now) : 0;
  if (time_pressure > 1) return {Verdict::kLate, RetryAfter(forecast)};
  const double pressure = std::max({
      time_pressure,
      Share(static_cast<double>(queue.calls), static_cast<double>(queue.calls_max)),
      Share(static_cast<double>(queue.bytes), static_cast<double>(queue.bytes_max)),
  });
  if (pressure > PressureMax(call.criticality, call.retry)) {
    return {Verdict::kShed, RetryAfter(forecast)};
  }
  return {};
}

OpenBatches CountBatches(std::span<const Pending> calls, int64_t rows_max) {
  OpenBatches open;
  for (const Pending& call : calls) {
    const int64_t rows = std::max<int64_t>(1, call.rows);
    if (rows > open.room) {
      ++open.batches;
      open.room = std::max<int64_t>(rows_max, rows);
    }
    open.room -= rows;
  }
  return open;
}

}  // namespace tensord::sched
