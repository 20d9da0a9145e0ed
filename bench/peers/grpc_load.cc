// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Load by a stock gRPC C++ client: generated stub, completion queue, one channel a connection.
//
//   grpc_load PORT MODELS INPUTS IN_FLIGHT CHANNELS SECONDS WARM_UP_SECONDS RATE DEADLINE_MS PID
//
// MODELS: one, or several joined by ',', asked by Zipf's law: the second half as often as the
// first, the third a third. INPUTS as of `tensord bench --input`, several joined by '+'. RATE 0 is
// a closed loop of IN_FLIGHT requests; else so many requests a second arrive as a Poisson process,
// whether or not answers come, and latency counts from the time a request should have been sent.
// DEADLINE_MS 0 sets none. PID's process tree is the server's, for its CPU time. Prints one JSON
// object.

#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/text.h"
#include "bench/process_cpu.h"
#include "bench/request.h"
#include "tensord/prediction_service.grpc.pb.h"

namespace tensord::peers {
namespace {

using Clock = std::chrono::steady_clock;
using Stub = tensorflow::serving::PredictionService::Stub;
using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;

// Requests out at a time in an open loop; what arrives beyond is counted, not sent.
constexpr int kOutMax = 20'000;

struct Plan {
  int port = 0;
  std::vector<PredictRequest> requests;
  int in_flight = 1;
  int channels = 1;
  double seconds = 1;
  double warm_up_seconds = 0;
  double rate = 0;
  int deadline_ms = 0;
  int server_pid = 0;
};

std::vector<std::unique_ptr<Stub>> Connect(const Plan& plan) {
  std::vector<std::unique_ptr<Stub>> stubs;
  for (int i = 0; i < plan.channels; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // A connection of its own.
    arguments.SetMaxReceiveMessageSize(-1);
    stubs.push_back(tensorflow::serving::PredictionService::NewStub(grpc::CreateCustomChannel(
        base::Cat("127.0.0.1:", plan.port), grpc::InsecureChannelCredentials(), arguments)));
  }
  return stubs;
}

struct Call {
  size_t channel = 0;
  Clock::time_point intended;
  grpc::ClientContext context;
  grpc::Status status;
  PredictResponse response;
  std::unique_ptr<grpc::ClientAsyncResponseReader<PredictResponse>> reader;
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

class Load {
 public:
  explicit Load(const Plan& plan)
      : plan_(plan), stubs_(Connect(plan)), models_(ZipfWeights(plan.requests.size())) {
    measured_from_ = Clock::now() + ToDuration(plan.warm_up_seconds);
    end_ = measured_from_ + ToDuration(plan.seconds);
  }

  void Run() {
    std::thread arrivals;
    if (plan_.rate > 0) {
      arrivals = std::thread([this] { Arrive(); });
    } else {
      for (int i = 0; i < plan_.in_flight; ++i) Send(static_cast<size_t>(i), Clock::now());
    }
    Collect();
    if (arrivals.joinable()) arrivals.join();
  }

  void Print() {
    std::sort(latencies_us_.begin(), latencies_us_.end());
    std::sort(refusals_us_.begin(), refusals_us_.end());
    double cpu_us = 0;
    for (const auto& [role, used] : bench::Used(cpu_before_, cpu_after_)) {
      cpu_us += absl::ToDoubleMicroseconds(used);
    }
    const double answered = std::max<double>(1, static_cast<double>(latencies_us_.size()));
    std::string codes;
    for (const auto& [code, count] : codes_) {
      codes += base::Cat(codes.empty() ? "" : ", ", "\"", code, "\": ", count);
    }
    std::printf(
        "{\"requests_per_second\": %.1f, \"goodput_per_second\": %.1f, \"offered_per_second\": "
        "%.1f, \"answered\": %zu, \"failed\": %zu, \"failed_by_code\": {%s}, \"unsent\": %zu, "
        "\"p50_us\": %u, \"p90_us\": %u, \"p99_us\": %u, \"p999_us\": %u, \"refusal_p50_us\": %u, "
        "\"refusal_p99_us\": %u, \"send_late_p99_us\": %u, \"cpu_us_per_request\": %.3f, "
        "\"client_cpu_us_per_request\": %.3f}\n",
        static_cast<double>(latencies_us_.size()) / measured_,
        static_cast<double>(good_) / measured_, static_cast<double>(offered_) / measured_,
        latencies_us_.size(), failed_, codes.c_str(), unsent_, At(latencies_us_, 0.5),
        At(latencies_us_, 0.9), At(latencies_us_, 0.99), At(latencies_us_, 0.999),
        At(refusals_us_, 0.5), At(refusals_us_, 0.99), LateP99(), cpu_us / answered,
        client_cpu_ * 1e6 / answered);
  }

 private:
  static Clock::duration ToDuration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  static std::discrete_distribution<size_t> ZipfWeights(size_t models) {
    std::vector<double> weights;
    for (size_t i = 1; i <= models; ++i) weights.push_back(1.0 / static_cast<double>(i));
    return {weights.begin(), weights.end()};
  }

  static uint32_t At(const std::vector<uint32_t>& sorted, double share) {
    if (sorted.empty()) return 0;
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  }

  uint32_t LateP99() {
    std::sort(late_us_.begin(), late_us_.end());
    return At(late_us_, 0.99);
  }

  // The thread of an open loop: sends each request when its time has come.
  void Arrive() {
    std::exponential_distribution<double> gap(plan_.rate);
    Clock::time_point next = Clock::now();
    for (size_t i = 0; next < end_; ++i) {
      std::this_thread::sleep_until(next);
      if (next >= measured_from_) {
        ++offered_;
        late_us_.push_back(static_cast<uint32_t>(Seconds(Clock::now() - next) * 1e6));
      }
      if (out_.load() < kOutMax) {
        Send(i, next);
      } else if (next >= measured_from_) {
        ++unsent_;
      }
      next += ToDuration(gap(random_));
    }
  }

  void Send(size_t channel, Clock::time_point intended) {
    out_.fetch_add(1);
    auto call = std::make_unique<Call>();
    call->channel = channel % stubs_.size();
    call->intended = intended;
    if (plan_.deadline_ms > 0) {
      const auto late = Clock::now() - intended;
      call->context.set_deadline(std::chrono::system_clock::now() +
                                 std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                     std::chrono::milliseconds(plan_.deadline_ms) - late));
    }
    // Only one thread sends: the arriving one, else the collecting one.
    const PredictRequest& request = plan_.requests[models_(random_)];
    call->reader = stubs_[call->channel]->AsyncPredict(&call->context, request, &queue_);
    Call* tag = call.release();  // Comes back from the queue.
    tag->reader->Finish(&tag->response, &tag->status, tag);
  }

  // The thread that takes what comes back, until everything did.
  void Collect() {
    bool measuring = false;
    void* tag = nullptr;
    bool ok = false;
    while (true) {
      const auto wait = std::chrono::system_clock::now() + std::chrono::milliseconds(10);
      const auto next = queue_.AsyncNext(&tag, &ok, wait);
      const Clock::time_point now = Clock::now();
      if (!measuring && now >= measured_from_) measuring = Start(now);
      if (measured_ == 0 && now >= end_) Finish(now);
      if (next == grpc::CompletionQueue::GOT_EVENT) Answered(static_cast<Call*>(tag), now);
      if (measured_ != 0 && (out_.load() == 0 || now > end_ + std::chrono::seconds(5))) return;
    }
  }

  bool Start(Clock::time_point now) {
    begun_ = now;
    client_cpu_ = CpuSeconds();
    if (plan_.server_pid != 0) cpu_before_ = bench::CpuOfTree(plan_.server_pid);
    return true;
  }

  void Finish(Clock::time_point now) {
    measured_ = Seconds(now - begun_);
    client_cpu_ = CpuSeconds() - client_cpu_;
    if (plan_.server_pid != 0) cpu_after_ = bench::CpuOfTree(plan_.server_pid);
  }

  void Answered(Call* returned, Clock::time_point now) {
    const std::unique_ptr<Call> call(returned);
    out_.fetch_sub(1);
    // An open loop counts every request that arrived in time, a closed one what came back in time.
    if (call->intended >= measured_from_ && (plan_.rate > 0 || measured_ == 0)) Count(*call, now);
    if (plan_.rate == 0 && now < end_) Send(call->channel, now);
  }

  void Count(const Call& call, Clock::time_point now) {
    const auto latency = static_cast<uint32_t>(Seconds(now - call.intended) * 1e6);
    if (call.status.ok()) {
      latencies_us_.push_back(latency);
      if (plan_.deadline_ms == 0 || latency <= static_cast<uint32_t>(plan_.deadline_ms) * 1000) {
        ++good_;
      }
      return;
    }
    ++failed_;
    ++codes_[static_cast<int>(call.status.error_code())];
    if (call.status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
      refusals_us_.push_back(latency);
    }
  }

  const Plan& plan_;
  std::vector<std::unique_ptr<Stub>> stubs_;
  grpc::CompletionQueue queue_;
  Clock::time_point measured_from_;
  Clock::time_point end_;
  Clock::time_point begun_;
  std::atomic<int> out_ = 0;
  // Of the thread that sends.
  std::mt19937_64 random_{7};
  std::discrete_distribution<size_t> models_;
  // Of the arriving thread, until it was joined.
  size_t offered_ = 0;
  size_t unsent_ = 0;
  std::vector<uint32_t> late_us_;
  // Of the collecting thread.
  double measured_ = 0;  // Seconds; zero until over.
  std::vector<uint32_t> latencies_us_;
  std::vector<uint32_t> refusals_us_;
  std::map<int, uint64_t> codes_;
  size_t good_ = 0;
  size_t failed_ = 0;
  bench::CpuByRole cpu_before_;
  bench::CpuByRole cpu_after_;
  double client_cpu_ = 0;
};

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool MakeRequests(std::string_view models, std::string_view text, Plan* plan) {
  std::vector<bench::MadeInput> inputs;
  for (const std::string_view part : Split(text, '+')) {
    auto input = bench::ParseInput(part);
    if (!input.ok()) return false;
    inputs.push_back(*std::move(input));
  }
  for (const std::string_view model : Split(models, ',')) {
    PredictRequest& request = plan->requests.emplace_back();
    if (!request.ParseFromString(bench::MakePredictRequest(model, "", inputs))) return false;
  }
  return !plan->requests.empty();
}

}  // namespace
}  // namespace tensord::peers

int main(int argc, char** argv) {
  tensord::peers::Plan plan;
  if (argc != 11 || !tensord::peers::MakeRequests(argv[2], argv[3], &plan)) {
    std::fprintf(stderr,
                 "usage: grpc_load PORT MODELS INPUTS IN_FLIGHT CHANNELS SECONDS WARM_UP_SECONDS "
                 "RATE DEADLINE_MS PID\n");
    return 2;
  }
  plan.port = std::atoi(argv[1]);
  plan.in_flight = std::atoi(argv[4]);
  plan.channels = std::max(1, std::atoi(argv[5]));
  plan.seconds = std::atof(argv[6]);
  plan.warm_up_seconds = std::atof(argv[7]);
  plan.rate = std::atof(argv[8]);
  plan.deadline_ms = std::atoi(argv[9]);
  plan.server_pid = std::atoi(argv[10]);
  tensord::peers::Load load(plan);
  load.Run();
  load.Print();
  std::fflush(nullptr);
  std::_Exit(0);  // What is still out may stay out.
}
