// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/wide_thread.h"

namespace tensord::engine {

WideThread::WideThread() : thread_([this] { Serve(); }) {}

WideThread::~WideThread() {
  state_.store(State::kEnd);
  state_.notify_all();
  thread_.join();
}

void WideThread::Run(const std::function<void()>& task) {
  task_ = &task;
  state_.store(State::kTask);
  state_.notify_all();
  state_.wait(State::kTask);
  state_.store(State::kIdle);
}

void WideThread::Serve() {
  while (true) {
    const State now = state_.load();
    if (now == State::kEnd) return;
    if (now != State::kTask) {
      state_.wait(now);
      continue;
    }
    (*task_)();
    state_.store(State::kDone);
    state_.notify_all();
  }
}

}  // namespace tensord::engine
