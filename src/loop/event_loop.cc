// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "loop/event_loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"

namespace tensord::loop {
namespace {

constexpr uint64_t kWakeId = 0;
constexpr int kEventsPerWait = 256;  // More only delays timers; the rest comes with the next wait.

}  // namespace

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& from) noexcept {
  if (this != &from) {
    Reset();
    loop_ = std::exchange(from.loop_, nullptr);
    id_ = std::exchange(from.id_, 0);
  }
  return *this;
}

void EventLoop::Watch::Reset() {
  if (loop_ != nullptr) loop_->Remove(id_);
  loop_ = nullptr;
}

void EventLoop::Watch::SetEvents(uint32_t events) {
  if (loop_ == nullptr) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id_;
  const int rc = epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_MOD, loop_->watched_.at(id_)->fd, &event);
  TENSORD_CHECK(rc == 0);
}

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create(const base::Clock& clock) {
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  base::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) {
    return absl::ErrnoToStatus(errno, "cannot make an event loop (raise the limit of open files)");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeId;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  return std::unique_ptr<EventLoop>(new EventLoop(clock, std::move(epoll), std::move(wake)));
}

EventLoop::EventLoop(const base::Clock& clock, base::UniqueFd epoll, base::UniqueFd wake)
    : clock_(clock), epoll_(std::move(epoll)), wake_(std::move(wake)), now_(clock.Now()) {}

EventLoop::~EventLoop() = default;

EventLoop::Watch EventLoop::Add(int fd, uint32_t events, ReadyTask ready) {
  const uint64_t id = ++last_id_;
  watched_[id] = std::make_unique<Watched>(Watched{.fd = fd, .ready = std::move(ready)});
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  TENSORD_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  return Watch(this, id);
}

void EventLoop::Remove(uint64_t id) {
  const auto at = watched_.find(id);
  if (at == watched_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->second->fd, nullptr);
  at->second->gone = true;
  // Its callback may be the one that runs now: free it when the iteration is over.
  if (dispatching_) removed_.push_back(std::move(at->second));
  watched_.erase(at);
}

TimerId EventLoop::At(absl::Time when, Task task) {
  const TimerId id = ++last_id_;
  timers_.emplace(std::pair(when, id), std::move(task));
  timer_times_.emplace(id, when);
  return id;
}

void EventLoop::Cancel(TimerId id) {
  const auto at = timer_times_.find(id);
  if (at == timer_times_.end()) return;
  timers_.erase({at->second, id});
  timer_times_.erase(at);
}

bool EventLoop::Post(Task task) {
  bool first = false;
  {
    base::MutexLock lock(&mu_);
    if (posted_.size() >= limits::kPostedTasksMax) return false;
    first = posted_.empty();
    posted_.push_back(std::move(task));
  }
  if (first) eventfd_write(wake_.get(), 1);
  return true;
}

void EventLoop::Stop() {
  stop_.store(true);
  eventfd_write(wake_.get(), 1);
}

void EventLoop::Run() {
  while (!stop_.load()) RunOnce(absl::InfiniteFuture());
  RunPosted();
  RunDeferred();
}

void EventLoop::RunOnce(absl::Time until) {
  std::array<epoll_event, kEventsPerWait> events;
  const int count =
      epoll_wait(epoll_.get(), events.data(), kEventsPerWait, WaitMilliseconds(until));
  TENSORD_CHECK(count >= 0 || errno == EINTR);
  now_ = clock_.Now();
  dispatching_ = true;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.u64 == kWakeId) {
      eventfd_t value = 0;
      eventfd_read(wake_.get(), &value);
      continue;
    }
    const auto at = watched_.find(event.data.u64);
    if (at != watched_.end()) at->second->ready(event.events);
  }
  dispatching_ = false;
  removed_.clear();
  RunPosted();
  RunTimers();
  RunDeferred();
}

void EventLoop::RunTimers() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    auto node = timers_.extract(timers_.begin());
    timer_times_.erase(node.key().second);
    node.mapped()();
  }
}

void EventLoop::RunPosted() {
  std::vector<Task> tasks;
  {
    base::MutexLock lock(&mu_);
    tasks.swap(posted_);
  }
  for (Task& task : tasks) task();
}

void EventLoop::RunDeferred() {
  running_deferred_.swap(deferred_);
  for (Task& task : running_deferred_) task();
  running_deferred_.clear();
}

int EventLoop::WaitMilliseconds(absl::Time until) const {
  if (!deferred_.empty()) return 0;
  if (!timers_.empty()) until = std::min(until, timers_.begin()->first.first);
  if (until == absl::InfiniteFuture()) return -1;
  // Rounded up: waking a little early would spin until the timer is due.
  const int64_t left = absl::ToInt64Milliseconds(until - clock_.Now() + absl::Microseconds(999));
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

}  // namespace tensord::loop
