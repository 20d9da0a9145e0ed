// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/time/time.h"

namespace tensord::base {

// The one source of time, as a seam: tests bring their own.
// Threads: implementations are safe from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic time: never steps back, unrelated to the calendar. Deadlines and durations use this.
  virtual absl::Time Now() const = 0;
};

// CLOCK_MONOTONIC. Lives for the whole process.
const Clock& MonotonicClock();

// The calendar, for log lines only.
absl::Time WallTime();

}  // namespace tensord::base
