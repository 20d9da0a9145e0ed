// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "loop/loop_set.h"

#include <atomic>
#include <functional>

#include "base/check.h"
#include "base/status_macros.h"

namespace tensord::loop {

absl::StatusOr<std::unique_ptr<LoopSet>> LoopSet::Create(int count) {
  TENSORD_CHECK(count >= 1);
  std::vector<std::unique_ptr<EventLoop>> loops;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
    loops.push_back(std::move(loop));
  }
  return std::unique_ptr<LoopSet>(new LoopSet(std::move(loops)));
}

LoopSet::~LoopSet() { Join(); }

void LoopSet::OnEach(const std::function<void(int)>& task, Task after) {
  // Shared because each loop's message holds it; the last one to run sends `after` home.
  struct Round {
    std::atomic<int> left;
    Task after;
  };
  auto round = std::make_shared<Round>();
  round->left = size();
  round->after = std::move(after);
  for (int i = 0; i < size(); ++i) {
    PostOrDie(at(i), [this, i, task, round] {
      task(i);
      if (round->left.fetch_sub(1) == 1) {
        PostOrDie(control(), [round] { round->after(); });
      }
    });
  }
}

void LoopSet::Run() {
  for (int i = 1; i < size(); ++i) threads_.emplace_back([this, i] { at(i).Run(); });
  control().Run();
  Join();
}

void LoopSet::Stop() {
  for (const auto& loop : loops_) loop->Stop();
}

void LoopSet::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void PostOrDie(EventLoop& loop, Task task) { TENSORD_CHECK(loop.Post(std::move(task))); }

}  // namespace tensord::loop
