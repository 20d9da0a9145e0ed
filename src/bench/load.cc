// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/load.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "bench/lane.h"
#include "loop/event_loop.h"

namespace tensord::bench {
namespace {

constexpr absl::Duration kStartAhead = absl::Milliseconds(20);  // For all threads to hear of it.

// One thread's share: the first ones take what does not divide.
template <typename Number>
Number Share(Number all, int threads, int number) {
  const auto count = static_cast<Number>(threads);
  return all / count + (static_cast<Number>(number) < all % count ? 1 : 0);
}

LoadPlan ShareOf(const LoadPlan& plan, int number) {
  LoadPlan share = plan;
  share.connections = Share(plan.connections, plan.threads, number);
  share.in_flight = Share(plan.in_flight, plan.threads, number);
  share.rate = plan.rate / plan.threads;
  if (plan.requests.has_value()) share.requests = Share(*plan.requests, plan.threads, number);
  return share;
}

// A descriptor for every connection, as far as the system allows.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

CpuByRole CpuOf(const std::vector<int>& pids) {
  CpuByRole all;
  for (const int pid : pids) {
    for (const auto& [role, cpu] : CpuOfTree(pid)) all[role] += cpu;
  }
  return all;
}

SecondSummary Summary(const Second& second) {
  return {.answered = second.answered,
          .failed = second.failed,
          .out = second.out,
          .p50_ns = second.latency.Quantile(0.5),
          .p99_ns = second.latency.Quantile(0.99)};
}

// SIGINT as an event while it lives; the second one ends the program as ever.
class CatchInterrupt {
 public:
  CatchInterrupt(loop::EventLoop& loop, std::function<void()> then) : then_(std::move(then)) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    // Before the threads start, which inherit it.
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    fd_.Reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (fd_.valid()) watch_ = loop.Add(fd_.get(), EPOLLIN, [this](uint32_t) { Take(); });
  }
  ~CatchInterrupt() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  void Take() {
    signalfd_siginfo info;
    while (read(fd_.get(), &info, sizeof(info)) > 0) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    then_();
  }

  const std::function<void()> then_;
  sigset_t before_ = {};
  base::UniqueFd fd_;
  loop::EventLoop::Watch watch_;
};

// The lanes of a load and their threads. Threads: the caller's; what the lanes say is posted to it.
class Run final : public Lane::Owner {
 public:
  Run(const LoadPlan& plan, const ProgressCallback& progress, loop::EventLoop& loop)
      : plan_(plan), progress_(progress), loop_(loop) {}

  absl::StatusOr<LoadResult> Execute() {
    const CatchInterrupt interrupt(loop_, [this] { Tell(&Lane::EndWindow, "interrupted"); });
    for (int i = 0; i < plan_.threads; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<loop::EventLoop> loop, loop::EventLoop::Create());
      auto lane = std::make_unique<Lane>(i, ShareOf(plan_, i), *loop, this);
      lanes_.push_back({std::move(loop), std::move(lane), {}});
    }
    for (Thread& thread : lanes_) {
      Lane* lane = thread.lane.get();
      To(*thread.loop, [lane] { lane->Open(); });
      thread.thread = std::thread([loop = thread.loop.get()] { loop->Run(); });
    }
    loop_.Run();
    for (Thread& thread : lanes_) {
      thread.loop->Stop();
      thread.thread.join();
    }
    if (!failure_.empty()) return absl::UnavailableError(failure_);
    return std::move(result_);
  }

 private:
  struct Thread {
    std::unique_ptr<loop::EventLoop> loop;
    std::unique_ptr<Lane> lane;  // After its loop: goes first.
    std::thread thread;
  };

  // A few messages a second: there is always room.
  static void To(loop::EventLoop& loop, loop::Task task) {
    TENSORD_CHECK(loop.Post(std::move(task)));
  }
  template <typename Method, typename Argument>
  void Tell(Method method, Argument argument) {
    for (Thread& thread : lanes_) {
      To(*thread.loop, [lane = thread.lane.get(), method, argument] { (lane->*method)(argument); });
    }
  }
  bool All(int* count) const { return ++*count == plan_.threads; }

  // Called in the lanes' threads.
  void OnUp(int) override {
    To(loop_, [this] {
      if (All(&up_)) Begin();
    });
  }
  void OnSecond(int lane, Second second) override {
    To(loop_, [this, lane, second = std::move(second)] { Add(lane, second); });
  }
  void OnWindowEnd(int) override {
    To(loop_, [this] {
      if (!All(&window_ends_)) return;
      result_.cpu = Used(cpu_before_, CpuOf(plan_.server_pids));
    });
  }
  void OnDone(int, Lane::Part part) override {
    To(loop_, [this, part = std::move(part)] { Take(part); });
  }
  void OnFailed(int, std::string why) override {
    To(loop_, [this, why = std::move(why)] {
      failure_ = why;
      loop_.Stop();
    });
  }

  void Begin() {
    const absl::Time start = loop_.Now() + kStartAhead;
    Tell(&Lane::Start, absl::ToUnixNanos(start));
    loop_.At(start + plan_.warm_up, [this] { cpu_before_ = CpuOf(plan_.server_pids); });
  }

  void Add(int lane, const Second& second) {
    const size_t index = heard_seconds_[lane]++;
    if (seconds_.size() <= index) seconds_.resize(index + 1);
    Second& sum = seconds_[index].first;
    sum.answered += second.answered;
    sum.failed += second.failed;
    sum.out += second.out;
    sum.latency.Merge(second.latency);
    if (++seconds_[index].second < plan_.threads) return;
    const SecondSummary summary = Summary(sum);
    sum = {};
    result_.seconds.push_back(summary);
    answered_ += summary.answered;
    failed_ += summary.failed;
    if (progress_) {
      progress_({.passed = absl::Seconds(index + 1),
                 .second = summary,
                 .answered = answered_,
                 .failed = failed_});
    }
  }

  void Take(const Lane::Part& part) {
    result_.tally.Merge(part.tally);
    result_.sent += part.sent;
    result_.answers_in_window += part.answers_in_window;
    result_.client_cpu += part.cpu;
    result_.duration = std::max(result_.duration, absl::Nanoseconds(part.window_ns));
    if (!part.ended_early.empty()) result_.ended_early = part.ended_early;
    if (All(&done_)) loop_.Stop();
  }

  const LoadPlan& plan_;
  const ProgressCallback& progress_;
  loop::EventLoop& loop_;
  std::vector<Thread> lanes_;
  int up_ = 0;
  int window_ends_ = 0;
  int done_ = 0;
  std::string failure_;
  CpuByRole cpu_before_;
  std::map<int, size_t> heard_seconds_;          // By lane.
  std::vector<std::pair<Second, int>> seconds_;  // And how many lanes are in it.
  uint64_t answered_ = 0;
  uint64_t failed_ = 0;
  LoadResult result_;
};

}  // namespace

double LoadResult::rate() const {
  const double seconds = absl::ToDoubleSeconds(duration);
  return seconds > 0 ? static_cast<double>(tally.answered) / seconds : 0;
}

double LoadResult::PerAnswer(absl::Duration used) const {
  if (answers_in_window == 0) return 0;
  return absl::ToDoubleMicroseconds(used) / static_cast<double>(answers_in_window);
}

double LoadResult::CpuMicroseconds() const {
  absl::Duration sum;
  for (const auto& [role, used] : cpu) sum += used;
  return PerAnswer(sum);
}

bool LoadResult::GeneratorWasTheLimit(const LoadPlan& plan) const {
  constexpr double kBusy = 0.95;
  return duration > absl::ZeroDuration() && client_cpu > kBusy * plan.threads * duration;
}

absl::StatusOr<LoadResult> RunLoad(const LoadPlan& plan, const ProgressCallback& progress) {
  RaiseDescriptorLimit();
  ASSIGN_OR_RETURN(std::unique_ptr<loop::EventLoop> loop, loop::EventLoop::Create());
  return Run(plan, progress, *loop).Execute();
}

}  // namespace tensord::bench
