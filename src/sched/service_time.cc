// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/service_time.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/limits.h"

namespace tensord::sched {
namespace {

constexpr double kGainShare = 0.97;       // Beyond this, a bigger batch buys nothing to speak of.
constexpr double kAlphaMin = 1.0 / 16;    // The averages follow the last 16 runs of a size.
constexpr double kFade = 0.998;           // A run fades to a third of its weight in 500 runs.
constexpr double kWeightMin = 1.0;        // A size seen long ago still counts as one run.
constexpr int64_t kBucketSamplesMin = 4;  // Fewer are an anecdote, not a point for the line.
constexpr int64_t kFitEvery = 16;    // Drawing the line costs as much as a tiny run's hand-over.
constexpr int64_t kShortestOf = 16;  // Runs: as far back as the averages look.
// What a hint may say: more is nonsense, or no use.
constexpr int64_t kSeededRowsMax = 1 << 24;
constexpr absl::Duration kSeededTimeMax = absl::Hours(1);
// A run that is so many times a hint, or a part of it, and not just by a scheduler's whim, refutes
// it.
constexpr double kRefutedTimes = 4;
constexpr double kRefutedSecondsMin = 0.001;
// 95 % of a normal distribution lie below mean + 1.645 sigma, and sigma is 1.253 mean deviations.
constexpr double kP95Deviations = 1.645 * 1.253;

// A run early on that is nothing like the hint: that was measured with other inputs than come.
bool Refutes(double seconds, double hint) {
  if (std::abs(seconds - hint) < kRefutedSecondsMin) return false;
  return seconds > kRefutedTimes * hint || hint > kRefutedTimes * seconds;
}

}  // namespace

int64_t GainCap(const ServiceLine& line, int64_t rows_max) {
  if (line.fixed <= 0) return 1;           // Time grows at least with the rows: no gain at all.
  if (line.per_row <= 0) return rows_max;  // Rows cost nothing: the more the better.
  // rows / (fixed + per_row * rows) >= share / per_row, solved for rows.
  const double rows = kGainShare / (1 - kGainShare) * line.fixed / line.per_row;
  if (rows >= static_cast<double>(rows_max)) return rows_max;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(rows)));
}

size_t ServiceTime::BucketOf(int64_t rows) {
  const auto width = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(rows - 1)));
  return std::min<size_t>(width, kBuckets - 1);
}

void ServiceTime::Add(int64_t rows, absl::Duration time) {
  Bucket& bucket = buckets_[BucketOf(rows)];
  if (!bucket.warm) {
    bucket.warm = true;
    return;
  }
  const double seconds = absl::ToDoubleSeconds(time);
  if (seeded_ && samples_ < limits::kPredictionSamplesMin && Refutes(seconds, MeanSeconds(rows))) {
    for (Bucket& other : buckets_) {
      if (other.seeded) other = {.warm = true};
    }
    seeded_ = false;
    line_.reset();
  }
  ++samples_;
  ++bucket.samples;
  bucket.seeded = false;
  if (bucket.timed++ % kShortestOf == 0) {
    bucket.shortest_before = std::exchange(bucket.shortest, {});
  }
  if (seconds < bucket.shortest.seconds) {
    bucket.shortest = {.seconds = seconds, .rows = static_cast<double>(rows)};
  }
  const double alpha = std::max(1.0 / static_cast<double>(bucket.samples), kAlphaMin);
  bucket.rows += alpha * (static_cast<double>(rows) - bucket.rows);
  bucket.seconds += alpha * (seconds - bucket.seconds);
  bucket.deviation += alpha * (std::abs(seconds - bucket.seconds) - bucket.deviation);
  for (Bucket& other : buckets_) other.weight *= kFade;
  bucket.weight += 1;
  if (samples_ % kFitEvery == 0 || samples_ == limits::kPredictionSamplesMin) FitLine();
}

void ServiceTime::Seed(int64_t rows, absl::Duration time) {
  if (rows < 1 || rows > kSeededRowsMax) return;
  if (time <= absl::ZeroDuration() || time > kSeededTimeMax) return;
  Bucket& bucket = buckets_[BucketOf(rows)];
  if (bucket.samples > 0 && !bucket.seeded) return;
  bucket = {.rows = static_cast<double>(rows),
            .seconds = absl::ToDoubleSeconds(time),
            .deviation = 0,
            .weight = 1,
            .samples = kBucketSamplesMin,
            .warm = true,
            .seeded = true};
  seeded_ = true;
  FitLine();
}

std::vector<RunTimeHint> ServiceTime::Learnt() const {
  std::vector<RunTimeHint> learnt;
  for (const Bucket& bucket : buckets_) {
    if (bucket.seeded || bucket.samples < kBucketSamplesMin) continue;
    learnt.push_back({.rows = std::llround(bucket.rows), .time = absl::Seconds(bucket.seconds)});
  }
  return learnt;
}

// Least squares over the buckets' averages, weighted so that equal relative errors count equally.
void ServiceTime::FitLine() {
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  int points = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.samples < kBucketSamplesMin || bucket.seconds <= 0) continue;
    const double weight = std::max(bucket.weight, kWeightMin) / (bucket.seconds * bucket.seconds);
    ++points;
    w += weight;
    wx += weight * bucket.rows;
    wy += weight * bucket.seconds;
    wxx += weight * bucket.rows * bucket.rows;
    wxy += weight * bucket.rows * bucket.seconds;
  }
  const double spread = w * wxx - wx * wx;
  if (points < 2 || spread <= 0) return;
  const double per_row = (w * wxy - wx * wy) / spread;
  line_ = ServiceLine{.fixed = (wy - per_row * wx) / w, .per_row = per_row};
}

double ServiceTime::MeanSeconds(int64_t rows) const {
  const auto x = static_cast<double>(rows);
  const Bucket& own = buckets_[BucketOf(rows)];
  const double per_row = line_.has_value() ? std::max(0.0, line_->per_row) : 0;
  if (own.samples >= kBucketSamplesMin) {
    return std::max(0.0, own.seconds + per_row * (x - own.rows));
  }
  if (line_.has_value()) return std::max(0.0, line_->fixed + line_->per_row * x);
  // One size is known: more rows take at least as long, fewer at least their share.
  for (const Bucket& bucket : buckets_) {
    if (bucket.samples < kBucketSamplesMin) continue;
    return bucket.seconds * std::min(1.0, x / bucket.rows);
  }
  return 0;
}

std::optional<absl::Duration> ServiceTime::Mean(int64_t rows) const {
  if (!known()) return std::nullopt;
  return absl::Seconds(MeanSeconds(rows));
}

std::optional<absl::Duration> ServiceTime::P95(int64_t rows) const {
  if (!known()) return std::nullopt;
  const Bucket& own = buckets_[BucketOf(rows)];
  return absl::Seconds(MeanSeconds(rows) + kP95Deviations * own.deviation);
}

std::optional<absl::Duration> ServiceTime::Least(int64_t rows) const {
  if (samples_ < limits::kPredictionSamplesMin) return std::nullopt;
  const Bucket& own = buckets_[BucketOf(rows)];
  if (own.timed < kBucketSamplesMin) return std::nullopt;
  const Shortest& least =
      own.shortest.seconds < own.shortest_before.seconds ? own.shortest : own.shortest_before;
  // Fewer rows than these take at least their share.
  return absl::Seconds(least.seconds * std::min(1.0, static_cast<double>(rows) / least.rows));
}

}  // namespace tensord::sched
