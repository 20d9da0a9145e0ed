// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "loop/timers.h"

namespace tensord::loop {

// One thread's loop over epoll: descriptors, timers and tasks from other threads.
//
// Threads: Post and Stop from any; all else from the thread inside Run (or before Run starts).
// Lifetime: outlives every Watch and every timer's target.
class EventLoop final : public Timers {
 public:
  // `events` are EPOLL* bits.
  using ReadyTask = absl::AnyInvocable<void(uint32_t events)>;

  // A descriptor that is watched until this goes away. The watch does not own the descriptor and
  // must go first. Destroying it inside its own callback is allowed.
  class Watch {
   public:
    Watch() = default;
    Watch(EventLoop* loop, uint64_t id) : loop_(loop), id_(id) {}
    Watch(Watch&& from) noexcept
        : loop_(std::exchange(from.loop_, nullptr)), id_(std::exchange(from.id_, 0)) {}
    Watch& operator=(Watch&& from) noexcept;
    ~Watch() { Reset(); }
    void Reset();
    // Replaces the set of EPOLL* bits waited for (EPOLLERR and EPOLLHUP always are).
    void SetEvents(uint32_t events);
    bool active() const { return loop_ != nullptr; }

   private:
    EventLoop* loop_ = nullptr;
    uint64_t id_ = 0;
  };

  // INTERNAL when the kernel refuses an epoll or event descriptor.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(
      const base::Clock& clock = base::MonotonicClock());
  ~EventLoop() override;

  // Level-triggered. REQUIRES: fd is open and not watched yet.
  [[nodiscard]] Watch Add(int fd, uint32_t events, ReadyTask ready);

  absl::Time Now() const override { return now_; }
  // Reads the clock, for stamps that tell apart what happens within one iteration; Now() is the
  // same for all of it, and free.
  absl::Time ClockNow() const { return clock_.Now(); }
  TimerId At(absl::Time when, Task task) override;
  void Cancel(TimerId id) override;

  // Runs `task` on the loop's thread, in the order of posting. False, and the task is dropped, when
  // kPostedTasksMax wait already: the loop hangs, and the caller must answer for its request.
  [[nodiscard]] bool Post(Task task);

  // Runs `task` at the end of this iteration, after everything that is ready now: for work that
  // many events share, such as one write for all they put in a buffer. From inside a deferred task
  // it means the next iteration, which then does not wait. Only from the loop's thread.
  void Defer(Task task) { deferred_.push_back(std::move(task)); }

  // Runs until Stop. Tasks posted before Stop still run.
  void Run();
  void Stop();
  // One iteration: waits at most until `until`, handles what is ready. For tests.
  void RunOnce(absl::Time until);

 private:
  struct Watched {
    int fd;
    ReadyTask ready;
    bool gone = false;
  };

  EventLoop(const base::Clock& clock, base::UniqueFd epoll, base::UniqueFd wake);
  void Remove(uint64_t id);
  void RunTimers();
  void RunPosted();
  void RunDeferred();
  int WaitMilliseconds(absl::Time until) const;

  const base::Clock& clock_;
  const base::UniqueFd epoll_;
  const base::UniqueFd wake_;  // An eventfd; id 0 in epoll.

  absl::Time now_;
  uint64_t last_id_ = 0;
  bool dispatching_ = false;
  std::unordered_map<uint64_t, std::unique_ptr<Watched>> watched_;
  std::vector<std::unique_ptr<Watched>> removed_;  // Freed after the iteration that removed them.
  std::map<std::pair<absl::Time, TimerId>, Task> timers_;
  std::unordered_map<TimerId, absl::Time> timer_times_;
  std::vector<Task> deferred_;
  std::vector<Task> running_deferred_;  // Empty between iterations; keeps its memory.

  std::atomic<bool> stop_{false};
  base::Mutex mu_;
  std::vector<Task> posted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensord::loop
