// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "loop/testing/fake_timers.h"
#include "sched/testing/fake_worker.h"
#include "sched/testing/sched_fixtures.h"
#include "sched/version_queue.h"

// A server under more load than it can bear, in simulated time: one executor with
// S(b) = 4 ms + 0.5 ms b and batches of at most 32 rows, so 1,600 calls a second; Poisson arrivals.
// Goodput is what was answered in time, as a share of that capacity.
namespace tensord::sched {

inline constexpr int64_t kRowsMax = 32;
inline constexpr double kCapacity = 1600;  // Calls a second.
inline constexpr absl::Duration kSpan = absl::Seconds(20);
inline constexpr absl::Duration kWarmUp = absl::Seconds(1);  // Not counted.

inline absl::Duration Service(int64_t rows) {
  return absl::Milliseconds(4) + absl::Microseconds(500) * rows;
}

struct Load {
  double share = 1;  // Of capacity.
  std::vector<absl::Duration> deadlines = {absl::Milliseconds(100)};
  double noise = 0;                       // Sigma of the run times' lognormal factor.
  bool retries = false;                   // A refused or late client tries twice more, 20 ms later.
  std::optional<double> share_then = {};  // From the middle of the span on.
  absl::Duration counted_from = kWarmUp;
};

struct Outcome {
  double goodput = 0;       // Share of capacity.
  double admitted_met = 0;  // Of the calls that were not refused at once, those answered in time.
  double met = 0;           // Of all calls.
  double wasted = 0;        // Of the run time, that for calls that had ended before. Ours only.
  absl::Duration p50, p99;  // Of calls answered in time.
};

struct Arrival {
  absl::Time at;
  absl::Duration timeout;
  int attempt = 0;
  size_t number = 0;  // Given by Clients.
};

inline std::vector<Arrival> Arrivals(const Load& load) {
  std::mt19937_64 random(42);
  std::exponential_distribution<double> gap(load.share * kCapacity);
  std::exponential_distribution<double> gap_then(load.share_then.value_or(load.share) * kCapacity);
  std::vector<Arrival> arrivals;
  absl::Time at = absl::UnixEpoch();
  while (true) {
    const bool then = at >= absl::UnixEpoch() + kSpan / 2;
    at += absl::Seconds(then ? gap_then(random) : gap(random));
    if (at >= absl::UnixEpoch() + kSpan) return arrivals;
    arrivals.push_back({at, load.deadlines[random() % load.deadlines.size()]});
  }
}

// Who makes the calls of a load. A retrying client tries twice more, each time 20 ms after it was
// refused or its deadline passed.
class Clients {
 public:
  explicit Clients(const Load& load) : retries_(load.retries), firsts_(Arrivals(load)) {}
  // The next call that comes. `run` makes what the server starts until then.
  std::optional<Arrival> Next(const std::function<void(absl::Time)>& run) {
    while (true) {
      const bool first = next_ < firsts_.size();
      if (!first && later_.empty()) return std::nullopt;
      if (first && (later_.empty() || firsts_[next_].at <= later_.top().at)) {
        run(firsts_[next_].at);
        return Come(firsts_[next_++]);
      }
      const Event event = later_.top();
      later_.pop();
      run(event.at);
      if (!event.passed) {
        Arrival call = event.call;
        call.at = event.at;
        return Come(call);
      }
      if (!settled_[event.call.number]) Retry(event.call, event.at);
    }
  }
  // Will be answered in time.
  void Met(const Arrival& call) { settled_[call.number] = true; }
  void Refused(const Arrival& call) {
    settled_[call.number] = true;
    Retry(call, call.at);
  }

 private:
  struct Event {
    absl::Time at;
    Arrival call;
    bool passed = false;  // Its deadline; else it comes again.
    bool operator>(const Event& other) const { return at > other.at; }
  };
  Arrival Come(Arrival call) {
    call.number = settled_.size();
    settled_.push_back(false);
    if (retries_) later_.push({call.at + call.timeout, call, true});
    return call;
  }
  void Retry(Arrival call, absl::Time now) {
    if (!retries_ || ++call.attempt > 2) return;
    later_.push({now + absl::Milliseconds(20), call});
  }

  const bool retries_;
  const std::vector<Arrival> firsts_;
  size_t next_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> later_;
  std::vector<bool> settled_;  // By number.
};

// Counts what a policy made of the load.
class Meter {
 public:
  explicit Meter(absl::Duration counted_from = kWarmUp) : counted_from_(counted_from) {}
  void InTime(absl::Time arrived, absl::Duration latency) {
    if (Counts(arrived)) latencies_.push_back(latency);
  }
  void Refused(absl::Time arrived) { refused_ += Counts(arrived) ? 1 : 0; }
  void Late(absl::Time arrived) { late_ += Counts(arrived) ? 1 : 0; }
  Outcome Sum() {
    Outcome outcome;
    const auto met = static_cast<double>(latencies_.size());
    outcome.goodput = met / (kCapacity * absl::ToDoubleSeconds(kSpan - counted_from_));
    outcome.admitted_met = met / std::max(1.0, met + static_cast<double>(late_));
    outcome.met = met / std::max(1.0, met + static_cast<double>(late_ + refused_));
    if (latencies_.empty()) return outcome;
    std::sort(latencies_.begin(), latencies_.end());
    outcome.p50 = latencies_[latencies_.size() / 2];
    outcome.p99 = latencies_[latencies_.size() * 99 / 100];
    return outcome;
  }

 private:
  bool Counts(absl::Time arrived) const { return arrived >= absl::UnixEpoch() + counted_from_; }

  const absl::Duration counted_from_;
  std::vector<absl::Duration> latencies_;
  int64_t refused_ = 0;
  int64_t late_ = 0;
};

// Ours: the real VersionQueue with a fake worker.
class OurServer {
 public:
  explicit OurServer(const Load& load) : load_(load), meter_(load.counted_from) {
    QueueOptions options;
    options.model = "sim";
    options.signatures = {OpenSignature()};
    options.rows_max = kRowsMax;
    queue_ = std::make_unique<VersionQueue>(timers_, std::move(options));
    worker_.time = [this](const FakeRun& run) {
      const double sigma = load_.noise;
      std::normal_distribution<double> factor(-sigma * sigma / 2, sigma);
      return Service(run.rows) * std::exp(factor(random_));
    };
    worker_.on_free = [this] { queue_->OnWorkerFree(); };
    queue_->AddWorker(&worker_);
  }

  Outcome Run() {
    for (const Arrival& arrival : Arrivals(load_)) {
      timers_.AdvanceTo(arrival.at);
      Call(arrival.timeout, 0);
    }
    while (timers_.RunNext()) {
    }
    Outcome outcome = meter_.Sum();
    const Stats stats = queue_->stats();
    outcome.wasted = absl::FDivDuration(stats.wasted_run_time, stats.run_time);
    return outcome;
  }

 private:
  void Call(absl::Duration timeout, int attempt) {
    const absl::Time arrived = timers_.Now();
    queue_->Submit({.inputs = input_.tensors,
                    .rows = 1,
                    .arrived = arrived,
                    .deadline = arrived + timeout,
                    .retry = attempt > 0,
                    .done = [=, this](CallResult result) {
                      const absl::Duration latency = timers_.Now() - arrived;
                      if (result.status.ok() && latency <= timeout) {
                        meter_.InTime(arrived, latency);
                        return;
                      }
                      if (absl::IsResourceExhausted(result.status)) {
                        meter_.Refused(arrived);
                      } else {
                        meter_.Late(arrived);
                      }
                      if (!load_.retries || attempt >= 2) return;
                      timers_.At(timers_.Now() + absl::Milliseconds(20),
                                 [=, this] { Call(timeout, attempt + 1); });
                    }});
  }

  const Load load_;
  std::mt19937_64 random_{7};
  loop::FakeTimers timers_;
  FakeWorker worker_{timers_};
  const OwnedViews input_ = Floats({1, 1}, 1);
  Meter meter_;
  std::unique_ptr<VersionQueue> queue_;
};

// Theirs: batching_session.cc and shared_batch_scheduler.h, with a queue of `batches_max`.
inline Outcome TheirServer(const Load& load, size_t batches_max) {
  Meter meter;
  Clients clients(load);
  std::deque<std::vector<Arrival>> batches;  // The last one is open.
  absl::Time free_at = absl::UnixEpoch();
  // Runs what starts before `until`.
  const auto run = [&](absl::Time until) {
    while (!batches.empty()) {
      const absl::Time start = std::max(free_at, batches.front().front().at);
      if (start > until) return;
      const std::vector<Arrival> batch = std::move(batches.front());
      batches.pop_front();
      const auto expired = [start](const Arrival& call) { return call.at + call.timeout < start; };
      if (std::all_of(batch.begin(), batch.end(), expired)) continue;
      free_at = start + Service(static_cast<int64_t>(batch.size()));
      for (const Arrival& call : batch) {
        if (free_at <= call.at + call.timeout) {
          meter.InTime(call.at, free_at - call.at);
          clients.Met(call);
        } else {
          meter.Late(call.at);
        }
      }
    }
  };
  while (const std::optional<Arrival> arrival = clients.Next(run)) {
    const bool fits = !batches.empty() && batches.back().size() < kRowsMax;
    if (!fits && batches.size() >= batches_max) {
      meter.Refused(arrival->at);
      clients.Refused(*arrival);
      continue;
    }
    if (!fits) batches.emplace_back();
    batches.back().push_back(*arrival);
  }
  run(absl::InfiniteFuture());
  return meter.Sum();
}

}  // namespace tensord::sched
