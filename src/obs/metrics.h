// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "obs/metric_table.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace tensord::obs {

// All metrics of a process, and the page that shows them.
// Threads: safe from any. Looking a series up takes a lock: hot paths look up once and keep it.
// Lifetime: series live until Remove; the pointers are good until then.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  // REQUIRES: the metric is of that kind and `labels` has as many values as the table has names.
  prometheus::Counter& Counter(Metric metric, const std::vector<std::string>& labels);
  prometheus::Gauge& Gauge(Metric metric, const std::vector<std::string>& labels);
  prometheus::Histogram& Histogram(Metric metric, const std::vector<std::string>& labels);
  // Forgets all gauges of a metric; those still true are set again when the page is made.
  void ClearGauges(Metric metric);

  // The page, in Prometheus' text format 0.0.4.
  std::string Page() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// The series that every answered request of one model touches, looked up once.
// Threads: safe from any.
class ModelMetrics {
 public:
  ModelMetrics(Metrics* metrics, const std::string& model);

  // `api` is "Predict" over gRPC and "predict" over REST, as the original's labels.
  void CountAnswer(absl::StatusCode code, absl::Duration latency, bool rest);
  void CountRun(absl::Duration run_time);

 private:
  std::array<prometheus::Counter*, 17> request_count_{};
  prometheus::Histogram& grpc_latency_;
  prometheus::Histogram& rest_latency_;
  prometheus::Histogram& runtime_latency_;
};

// "OK", "NOT_FOUND": the label values of request_count.
std::string_view StatusLabel(absl::StatusCode code);
void Add(prometheus::Counter& counter, double value);
void Set(prometheus::Gauge& gauge, double value);
void Observe(prometheus::Histogram& histogram, double value);

}  // namespace tensord::obs
