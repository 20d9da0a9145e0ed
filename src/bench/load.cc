// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/load.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "loop/event_loop.h"

namespace tensord::bench {
namespace {

constexpr size_t kReasonsMax = 10;  // A server that fails in many ways is shown by a few.

absl::Duration OwnCpu() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

// Keeps the requests going and counts.
class Generator {
 public:
  Generator(loop::EventLoop& loop, const LoadPlan& plan, Progress progress)
      : loop_(loop), plan_(plan), progress_(std::move(progress)) {}

  absl::StatusOr<LoadResult> Run() {
    for (int i = 0; i < plan_.connections; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<Client> client, plan_.rest
                                                           ? ConnectRest(loop_, plan_.target)
                                                           : ConnectGrpc(loop_, plan_.target));
      clients_.push_back(std::move(client));
    }
    for (int i = 0; i < std::max(plan_.in_flight, plan_.connections); ++i) {
      SendOn(*clients_[static_cast<size_t>(i % plan_.connections)]);
    }
    loop_.At(loop_.Now() + plan_.warm_up, [this] { StartMeasuring(); });
    loop_.Run();
    return std::move(result_);
  }

 private:
  void SendOn(Client& client) {
    const absl::Time sent = base::MonotonicClock().Now();
    client.Send([this, &client, sent](Reply reply) {
      Count(sent, std::move(reply));
      if (!stopped_) SendOn(client);
    });
  }

  void Count(absl::Time sent, Reply reply) {
    if (!measuring_ || sent < measured_from_) return;
    if (!reply.ok) {
      ++result_.failed;
      if (result_.reasons.size() < kReasonsMax || result_.reasons.contains(reply.reason)) {
        ++result_.reasons[reply.reason];
      }
      return;
    }
    ++result_.answered;
    result_.answer_bytes += reply.bytes;
    const int64_t latency = absl::ToInt64Microseconds(base::MonotonicClock().Now() - sent);
    result_.latencies_us.push_back(static_cast<uint32_t>(latency));
  }

  void StartMeasuring() {
    if (plan_.server_pid != 0) cpu_before_ = CpuOfTree(plan_.server_pid);
    own_before_ = OwnCpu();
    measured_from_ = base::MonotonicClock().Now();
    measuring_ = true;
    loop_.At(measured_from_ + plan_.duration, [this] { Finish(); });
    Tick();
  }

  void Tick() {
    const absl::Duration passed = loop_.Now() - measured_from_;
    if (progress_ && passed > absl::ZeroDuration()) progress_(passed, result_.answered);
    loop_.At(loop_.Now() + absl::Seconds(1), [this] { Tick(); });
  }

  void Finish() {
    measuring_ = false;
    stopped_ = true;
    result_.duration = base::MonotonicClock().Now() - measured_from_;
    result_.client_cpu = OwnCpu() - own_before_;
    if (plan_.server_pid != 0) result_.cpu = Used(cpu_before_, CpuOfTree(plan_.server_pid));
    std::sort(result_.latencies_us.begin(), result_.latencies_us.end());
    loop_.Stop();
  }

  loop::EventLoop& loop_;
  const LoadPlan& plan_;
  Progress progress_;
  std::vector<std::unique_ptr<Client>> clients_;
  LoadResult result_;
  bool measuring_ = false;
  bool stopped_ = false;
  absl::Time measured_from_;
  CpuByRole cpu_before_;
  absl::Duration own_before_;
};

}  // namespace

double LoadResult::rate() const {
  return static_cast<double>(answered) / absl::ToDoubleSeconds(duration);
}

absl::Duration LoadResult::Quantile(double share) const {
  if (latencies_us.empty()) return absl::ZeroDuration();
  const auto last = static_cast<double>(latencies_us.size() - 1);
  return absl::Microseconds(latencies_us[static_cast<size_t>(share * last)]);
}

double LoadResult::CpuMicroseconds() const {
  absl::Duration sum;
  for (const auto& [role, used] : cpu) sum += used;
  return answered == 0 ? 0 : absl::ToDoubleMicroseconds(sum) / static_cast<double>(answered);
}

absl::StatusOr<LoadResult> RunLoad(const LoadPlan& plan, Progress progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<loop::EventLoop> loop, loop::EventLoop::Create());
  return Generator(*loop, plan, std::move(progress)).Run();
}

}  // namespace tensord::bench
