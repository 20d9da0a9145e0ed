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
// Between trials: often enough that a client soon notices that a model became faster, and so seldom
// that they take a tenth of an executor, which has nothing else to do when they start.
constexpr absl::Duration kTrialEvery = absl::Seconds(1);
constexpr double kTrialTimes = 10;  // Of what the run takes.

// Up to half as much again, by chance.
absl::Duration RetryAfter(const Applicant& call, const std::optional<Forecast>& forecast) {
  constexpr uint64_t kSteps = 64;
  const double spread = 1 + 0.5 * static_cast<double>(call.salt % kSteps) / kSteps;
  if (!forecast.has_value()) return spread * kRetryAfterUnknown;
  return std::clamp(spread * forecast->wait, kRetryAfterMin, kRetryAfterMax);
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 1; }

// When it has to be answered.
absl::Duration TimeLeft(const Applicant& call, absl::Time now) {
  if (call.deadline == absl::InfiniteFuture()) return absl::InfiniteDuration();
  const absl::Duration margin = std::min(kMarginShare * (call.deadline - call.arrived), kMarginMax);
  return call.deadline - margin - now;
}

// How much of its remaining time the call would spend here; above 1 it would be late.
double TimePressure(const Applicant& call, const Forecast& forecast, absl::Time now) {
  const absl::Duration left = TimeLeft(call, now);
  if (left == absl::InfiniteDuration()) return 0;
  if (left <= absl::ZeroDuration()) return 2;
  return absl::FDivDuration(forecast.wait + forecast.run, left);
}

// How much of the time that it could wait it would. REQUIRES: it would not be late.
double WaitPressure(const Applicant& call, const Forecast& forecast, absl::Time now) {
  const absl::Duration left = TimeLeft(call, now);
  if (left == absl::InfiniteDuration() || forecast.wait <= absl::ZeroDuration()) return 0;
  return absl::FDivDuration(forecast.wait, left - forecast.run);
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
    return {Verdict::kFull, RetryAfter(call, forecast)};
  }
  const double time_pressure = forecast.has_value() ? TimePressure(call, *forecast, now) : 0;
  if (time_pressure > 1) return {Verdict::kLate, RetryAfter(call, forecast)};
  const double room_pressure =
      std::max(Share(static_cast<double>(queue.calls), static_cast<double>(queue.calls_max)),
               Share(static_cast<double>(queue.bytes), static_cast<double>(queue.bytes_max)));
  if (std::max(time_pressure, room_pressure) > PressureMax(call.criticality, call.retry)) {
    return {Verdict::kShed, RetryAfter(call, forecast)};
  }
  if (call.over_share) {
    const double wait_pressure = forecast.has_value() ? WaitPressure(call, *forecast, now) : 0;
    if (std::max(wait_pressure, room_pressure) > kOverSharePressureMax) {
      return {Verdict::kOverShare, RetryAfter(call, forecast)};
    }
  }
  return {};
}

Admission AdmitAtOnce(const Applicant& call, const Outlook& outlook, absl::Time now) {
  if (!outlook.least.has_value() || now + *outlook.least <= call.deadline) return {};
  const absl::Time next = outlook.trial_last + std::max(kTrialEvery, kTrialTimes * *outlook.least);
  if (outlook.idle && next <= now) return {.trial = true};
  // Before it may have its trial nothing can have changed.
  const absl::Duration wait = std::max(next - now, *outlook.least);
  return {Verdict::kLate, RetryAfter(call, Forecast{.wait = wait, .run = *outlook.least})};
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
