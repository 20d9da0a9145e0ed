// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace tensord::loop {

using Task = absl::AnyInvocable<void()>;
using TimerId = uint64_t;  // 0 is never given out.

// Time and timers, as a seam: an EventLoop in the server, FakeTimers in tests and simulations.
// Threads: only the thread that runs the loop.
class Timers {
 public:
  virtual ~Timers() = default;
  // Monotonic time, read once an iteration of the loop.
  virtual absl::Time Now() const = 0;
  // Runs `task` once, at `when` or soon after, never inside this call.
  virtual TimerId At(absl::Time when, Task task) = 0;
  // Forgets a timer. Does nothing for one that has run or is unknown.
  virtual void Cancel(TimerId id) = 0;
};

}  // namespace tensord::loop
