// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "config/request_logging.h"
#include "front/handlers/record_file.h"
#include "loop/loop_thread.h"
#include "obs/request_metrics.h"
#include "wire/prediction_log.h"

// Sampled requests with their answers, kept as TFRecord files of PredictionLog: logging_config of
// ModelServerConfig. They replay as warm-up. Never in the way of serving: what the disk cannot keep
// up with is dropped and counted.
namespace tensord::front {

// One sampled request. Request and response are serialized messages of the call's kind.
struct LoggedRequest {
  wire::LoggedCall call = wire::LoggedCall::kPredict;
  std::string request = {};
  std::string response = {};
  tensor::ModelSpec answered = {};
};

// The files of all models, written by one thread.
// Threads: safe from any, but for what says otherwise.
class RecordWriter {
 public:
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Start();

  // `done` hears how it ended, on the thread, or at once with RESOURCE_EXHAUSTED when
  // kRequestLogBytesWaiting wait already.
  void Write(const std::string& prefix, LoggedRequest request, double sampling_rate,
             const std::function<void(const absl::Status&)>& done);
  // Gives all open files their names, and waits for it at most that long.
  void Complete(absl::Duration longest);

 private:
  explicit RecordWriter(std::unique_ptr<loop::LoopThread> thread);

  // On the thread.
  absl::Status Append(const std::string& prefix, const LoggedRequest& request, double rate);
  void Tick();
  void Tell(const absl::Status& status);

  std::atomic<uint64_t> waiting_bytes_{0};
  // Of the thread.
  std::map<std::string, RecordFile> files_;  // By prefix: models that share one share the files.
  bool ticking_ = false;
  bool failing_ = false;

  const std::unique_ptr<loop::LoopThread> thread_;  // Last: its tasks use the rest.
};

// Whether and where the requests of one model are logged; replaced by each reload.
// Threads: safe from any. Lifetime: what it was made with outlives it.
class RequestLog {
 public:
  RequestLog(RecordWriter* writer, obs::ModelMetrics* metrics)
      : writer_(writer), metrics_(metrics) {}

  void Configure(const config::RequestLogging& config);
  // Draws: whether this request is logged. Costs a load while the model's rate is 0.
  bool Sample() {
    const uint64_t threshold = threshold_.load(std::memory_order_relaxed);
    return threshold > 0 && Draw() < threshold;
  }
  // REQUIRES: Sample said so.
  void Write(LoggedRequest request);

 private:
  static uint64_t Draw();  // 32 random bits.

  RecordWriter* const writer_;
  obs::ModelMetrics* const metrics_;
  std::atomic<uint64_t> threshold_{0};  // Of 2^32.
  base::Mutex mu_;
  config::RequestLogging config_ ABSL_GUARDED_BY(mu_);
};

// The request logs of all models, by name.
// Threads: the control loop.
class RequestLogs {
 public:
  RequestLogs(RecordWriter* writer, obs::RequestMetrics* metrics)
      : writer_(writer), metrics_(metrics) {}

  std::shared_ptr<RequestLog> Of(const std::string& model);
  // What is not in `configs` is logged no more.
  void Configure(std::map<std::string, config::RequestLogging> configs);

 private:
  RecordWriter* const writer_;
  obs::RequestMetrics* const metrics_;
  std::map<std::string, config::RequestLogging> configs_;
  std::map<std::string, std::shared_ptr<RequestLog>> logs_;
};

}  // namespace tensord::front
