// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "loop/event_loop.h"

namespace tensord::loop {

// The loops of a process. Loop 0, the control loop, runs in the thread that calls Run; every other
// loop has a thread of its own.
// Threads: Create, Run and the destructor from one thread; the loops as EventLoop says.
class LoopSet {
 public:
  // REQUIRES: count >= 1.
  static absl::StatusOr<std::unique_ptr<LoopSet>> Create(int count);
  ~LoopSet();

  int size() const { return static_cast<int>(loops_.size()); }
  EventLoop& at(int i) { return *loops_[static_cast<size_t>(i)]; }
  EventLoop& control() { return at(0); }

  // Runs `task` once on every loop, then `after` on the control loop. All that was posted to a
  // loop before runs before it. Called on the control loop.
  void OnEach(const std::function<void(int)>& task, Task after);

  // Starts the other loops' threads and runs the control loop until Stop.
  void Run();
  // From any thread: ends all loops.
  void Stop();

 private:
  explicit LoopSet(std::vector<std::unique_ptr<EventLoop>> loops) : loops_(std::move(loops)) {}
  void Join();

  const std::vector<std::unique_ptr<EventLoop>> loops_;
  std::vector<std::thread> threads_;
};

// Posts a task whose loss would break an invariant (a lease coming home, a drain): when the loop's
// queue is full for good, the process is beyond repair and ends.
void PostOrDie(EventLoop& loop, Task task);

}  // namespace tensord::loop
