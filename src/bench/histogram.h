// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensord::bench {

// Counts of durations in nanoseconds, in buckets that are at most 0.1 % wide: an HdrHistogram of
// three significant digits from 1 ns to an hour, with the original's layout, so that its tools read
// what Encode gives. Threads: one at a time.
class Histogram {
 public:
  // Clamped to 0 and an hour.
  void Record(int64_t nanoseconds);
  void Merge(const Histogram& other);
  void Clear();

  uint64_t count() const { return count_; }
  // Both 0 when nothing was recorded.
  int64_t max() const { return max_; }
  double mean() const;
  // The value that this share of the counts does not exceed. REQUIRES: 0 <= share <= 1. 0 when
  // nothing was recorded.
  int64_t Quantile(double share) const;

  // The histogram as base64 of its "V2 compressed" form: a few hundred characters, which every
  // HdrHistogram library decodes.
  std::string Encode() const;

 private:
  uint64_t count_ = 0;
  int64_t max_ = 0;
  std::vector<uint64_t> counts_;  // As long as the largest value needs.
};

}  // namespace tensord::bench
