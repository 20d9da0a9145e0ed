// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace tensord::engine {

// The thread in which a model's wide runs are made. oneDNN's kernels are prepared for a number of
// threads, and the runtime keeps them by the calling thread and not by that number: a thread that
// makes runs of both widths would make all with the number of the first.
//
// Threads: Run from any, but one at a time; the hand-over costs two wake-ups, and such runs take
// milliseconds.
class WideThread {
 public:
  WideThread();
  ~WideThread();
  WideThread(const WideThread&) = delete;
  WideThread& operator=(const WideThread&) = delete;

  // Returns when `task` has run there.
  void Run(const std::function<void()>& task);

 private:
  enum class State : uint8_t { kIdle, kTask, kDone, kEnd };

  void Serve();

  const std::function<void()>* task_ = nullptr;  // Whoever may set the state owns it.
  std::atomic<State> state_ = State::kIdle;
  std::thread thread_;
};

}  // namespace tensord::engine
