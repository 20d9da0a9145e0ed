// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace tensord::front {

// Allows `burst` events at once and `per_second` in the long run. Threads: one.
class TokenBucket {
 public:
  TokenBucket(double burst, double per_second, absl::Time now)
      : burst_(burst), per_second_(per_second), tokens_(burst), filled_(now) {}

  // False when the event is one too many; it leaves no debt.
  [[nodiscard]] bool Take(absl::Time now) {
    tokens_ += per_second_ * absl::ToDoubleSeconds(now - filled_);
    tokens_ = std::min(tokens_, burst_);
    filled_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  void Give(double tokens) { tokens_ = std::min(tokens_ + tokens, burst_); }

 private:
  const double burst_;
  const double per_second_;
  double tokens_;
  absl::Time filled_;
};

}  // namespace tensord::front
