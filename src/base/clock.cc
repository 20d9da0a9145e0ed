// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/clock.h"

#include <time.h>

#include "absl/time/clock.h"

namespace tensord::base {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::TimeFromTimespec(now);
  }
};

}  // namespace

const Clock& MonotonicClock() {
  static const SystemClock clock;
  return clock;
}

absl::Time WallTime() { return absl::Now(); }

}  // namespace tensord::base
