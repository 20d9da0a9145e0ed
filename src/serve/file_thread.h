// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "loop/event_loop.h"

namespace tensord::serve {

// The one thread that reads configuration files, so that a slow disk stops no loop.
// Threads: Run from any. The destructor waits for the task that runs.
class FileThread {
 public:
  static absl::StatusOr<std::unique_ptr<FileThread>> Start() {
    absl::StatusOr<std::unique_ptr<loop::EventLoop>> loop = loop::EventLoop::Create();
    if (!loop.ok()) return loop.status();
    return std::unique_ptr<FileThread>(new FileThread(*std::move(loop)));
  }
  ~FileThread() {
    loop_->Stop();
    thread_.join();
  }

  // False, and nothing happens, when too much waits already.
  [[nodiscard]] bool Run(loop::Task task) { return loop_->Post(std::move(task)); }

 private:
  explicit FileThread(std::unique_ptr<loop::EventLoop> loop)
      : loop_(std::move(loop)), thread_([this] { loop_->Run(); }) {}

  const std::unique_ptr<loop::EventLoop> loop_;
  std::thread thread_;
};

}  // namespace tensord::serve
