// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <utility>

#include "loop/timers.h"

namespace tensord::loop {

// Time that moves only when a test moves it. Starts at the epoch.
class FakeTimers final : public Timers {
 public:
  absl::Time Now() const override { return now_; }
  TimerId At(absl::Time when, Task task) override {
    timers_.emplace(std::pair(when, ++last_id_), std::move(task));
    return last_id_;
  }
  void Cancel(TimerId id) override {
    std::erase_if(timers_, [id](const auto& entry) { return entry.first.second == id; });
  }

  // Runs the next timer due at or before `limit`, with Now() at its time; false when there is none.
  bool RunNext(absl::Time limit = absl::InfiniteFuture()) {
    if (timers_.empty() || timers_.begin()->first.first > limit) return false;
    auto node = timers_.extract(timers_.begin());
    now_ = std::max(now_, node.key().first);
    node.mapped()();
    return true;
  }
  // Runs all that is due by `when`, in order, then stands at `when`.
  void AdvanceTo(absl::Time when) {
    while (RunNext(when)) {
    }
    now_ = std::max(now_, when);
  }
  void Advance(absl::Duration by) { AdvanceTo(now_ + by); }
  // When the next timer is due; InfiniteFuture when there is none.
  absl::Time NextAt() const {
    return timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first.first;
  }
  size_t pending() const { return timers_.size(); }

 private:
  absl::Time now_ = absl::UnixEpoch();
  TimerId last_id_ = 0;
  std::map<std::pair<absl::Time, TimerId>, Task> timers_;
};

}  // namespace tensord::loop
