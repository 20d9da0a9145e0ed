// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "base/limits.h"

namespace tensord::sched {

// The line S(rows) = fixed + per_row * rows that a model's run times lie on, in seconds.
struct ServiceLine {
  double fixed = 0;
  double per_row = 0;
};

// The smallest batch that reaches kGainShare of the rate that batches of any size could reach, at
// most rows_max: more rows than that only couple latencies. REQUIRES: rows_max >= 1.
int64_t GainCap(const ServiceLine& line, int64_t rows_max);

// How long a run took that this process did not see under load: while its worker was warmed up, or
// in an earlier life of the server.
struct RunTimeHint {
  int signature = 0;
  int64_t rows = 1;
  absl::Duration time;
};

// Learns how long one signature's runs take, by batch size, from the runs themselves.
//
// Sizes are kept in buckets (1, 2, 3-4, 5-8, ...), each with moving averages of rows, time and the
// time's deviation. Old knowledge fades, so that a busier machine is noticed. Every prediction is
// nullopt before kPredictionSamplesMin runs were seen or a hint was given, and rather too short
// than too long: callers refuse and drop work because of it.
class ServiceTime {
 public:
  // One successful run. REQUIRES: rows >= 1.
  void Add(int64_t rows, absl::Duration time);
  // A hint, which counts as a few runs, so that the first real ones soon make little of it. Of two
  // for one size the later holds; one that makes no sense, or comes after real runs, counts for
  // nothing.
  void Seed(int64_t rows, absl::Duration time);
  // What was learnt from runs (not from hints), one for each size.
  std::vector<RunTimeHint> Learnt() const;

  int64_t samples() const { return samples_; }
  // nullopt until at least two sizes were seen often enough to draw a line through.
  std::optional<ServiceLine> line() const { return line_; }
  // What a run of so many rows takes on average, and in all but 5 % of cases. REQUIRES: rows >= 1.
  std::optional<absl::Duration> Mean(int64_t rows) const;
  std::optional<absl::Duration> P95(int64_t rows) const;
  // The shortest of the last runs of so many rows: what no run will do much better than. nullopt
  // before enough of this size were seen; hints say nothing of it. REQUIRES: rows >= 1.
  std::optional<absl::Duration> Least(int64_t rows) const;

 private:
  struct Shortest {
    double seconds = std::numeric_limits<double>::infinity();
    double rows = 1;
  };
  struct Bucket {
    double rows = 0;  // Moving averages.
    double seconds = 0;
    double deviation = 0;  // Mean of |time - average|.
    double weight = 0;     // Runs seen, the old ones faded.
    int64_t samples = 0;  // -1 + runs seen: the first run of a size warms it up and is not counted.
    int64_t timed = 0;    // Of them, those that were no hint.
    Shortest shortest = {};         // Of the last kShortestOf runs or fewer,
    Shortest shortest_before = {};  // and of as many before.
    bool warm = false;
    bool seeded = false;  // All it knows is a hint.
  };
  static constexpr int kBuckets = 24;

  bool known() const { return seeded_ || samples_ >= limits::kPredictionSamplesMin; }
  static size_t BucketOf(int64_t rows);
  double MeanSeconds(int64_t rows) const;
  void FitLine();

  std::array<Bucket, kBuckets> buckets_;
  std::optional<ServiceLine> line_;
  int64_t samples_ = 0;
  bool seeded_ = false;
};

}  // namespace tensord::sched
