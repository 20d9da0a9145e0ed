// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/arrivals.h"

#include <cmath>

namespace tensord::bench {

int64_t Arrivals::Next() {
  at_ns_ += pacing_ == Pacing::kPoisson ? -std::log1p(-Uniform(random_)) * mean_ns_ : mean_ns_;
  return static_cast<int64_t>(at_ns_);
}

}  // namespace tensord::bench
