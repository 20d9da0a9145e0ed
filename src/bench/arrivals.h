// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <random>

namespace tensord::bench {

enum class Pacing {
  kClosed,    // The next request goes out when one is answered.
  kPoisson,   // Independent clients: gaps are exponential.
  kConstant,  // A clock.
};

// When requests are due, whatever became of those before: the gaps of an open loop.
// REQUIRES: the pacing is not kClosed, per_second > 0.
class Arrivals {
 public:
  Arrivals(Pacing pacing, double per_second, uint64_t seed)
      : pacing_(pacing), mean_ns_(1e9 / per_second), random_(seed) {}

  // When the next request is due, in nanoseconds since the first could have been.
  int64_t Next();

 private:
  const Pacing pacing_;
  const double mean_ns_;
  double at_ns_ = 0;  // Not rounded: a rate is kept over days.
  std::mt19937_64 random_;
};

// A number in [0, 1), from one draw.
inline double Uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1.0p-53;
}

}  // namespace tensord::bench
