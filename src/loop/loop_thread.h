// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "loop/event_loop.h"

namespace tensord::loop {

// A thread that runs tasks one after the other, for what may wait for a disk.
// Threads: Run from any. The destructor waits for the task that runs.
class LoopThread {
 public:
  static absl::StatusOr<std::unique_ptr<LoopThread>> Start() {
    absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
    if (!loop.ok()) return loop.status();
    return std::unique_ptr<LoopThread>(new LoopThread(*std::move(loop)));
  }
  ~LoopThread() {
    loop_->Stop();
    thread_.join();
  }

  // False, and nothing happens, when too much waits already.
  [[nodiscard]] bool Run(Task task) { return loop_->Post(std::move(task)); }
  // Waits until all that was asked for before has run, at most for `longest`.
  void Flush(absl::Duration longest);
  EventLoop& loop() { return *loop_; }

 private:
  explicit LoopThread(std::unique_ptr<EventLoop> loop)
      : loop_(std::move(loop)), thread_([this] { loop_->Run(); }) {}

  const std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
};

}  // namespace tensord::loop
