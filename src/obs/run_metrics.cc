// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/run_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include "base/limits.h"
#include "base/text.h"

namespace tensord::obs {
namespace {

constexpr size_t kBatchSizesMax =
    256;  // Distinct ones; few are allowed sizes, the rest is bounded.

}  // namespace

void RunMetrics::CountRun(absl::Duration run_time) {
  runs_.Get([&]() -> auto& { return metrics_->Counter(Metric::kGraphRuns, {}); }).Increment();
  run_time_.Get([&]() -> auto& { return metrics_->Counter(Metric::kGraphRunTime, {}); })
      .Increment(absl::ToDoubleMicroseconds(run_time));
  run_times_.Get([&]() -> auto& { return metrics_->Histogram(Metric::kGraphRunTimeHistogram, {}); })
      .Observe(absl::ToDoubleMicroseconds(run_time));
}

prometheus::Histogram* RunMetrics::PaddingOf(int64_t batch_rows) {
  base::MutexLock lock(&mu_);
  const auto at = padding_.find(batch_rows);
  if (at != padding_.end()) return at->second;
  if (padding_.size() >= kBatchSizesMax) return nullptr;
  prometheus::Histogram* padding =
      &metrics_->Histogram(Metric::kBatchPaddingSize, {base::Cat(batch_rows)});
  padding_[batch_rows] = padding;
  return padding;
}

void RunMetrics::CountBatch(int64_t rows, int64_t pad_rows) {
  const int64_t all = rows + pad_rows;
  batches_.Get([&]() -> auto& { return metrics_->Counter(Metric::kBatchRunCount, {}); })
      .Increment();
  batch_rows_.Get([&]() -> auto& { return metrics_->Histogram(Metric::kBatchProcessedSize, {}); })
      .Observe(static_cast<double>(all));
  if (prometheus::Histogram* padding = PaddingOf(all); padding != nullptr) {
    padding->Observe(static_cast<double>(pad_rows));
  }
}

void RunMetrics::CountBatchedCall(absl::Duration wait, int64_t rows, size_t inputs) {
  // The server's thread pools have no names in the original either.
  queue_wait_.Get([&]() -> auto& { return metrics_->Histogram(Metric::kBatchQueueLatency, {""}); })
      .Observe(absl::ToDoubleMicroseconds(wait));
  auto& rows_of_inputs =
      call_rows_.Get([&]() -> auto& { return metrics_->Histogram(Metric::kBatchInputSize, {}); });
  for (size_t i = 0; i < inputs; ++i) rows_of_inputs.Observe(static_cast<double>(rows));
}

std::string LoadMetrics::PathLabel(const std::string& path) {
  base::MutexLock lock(&mu_);
  if (paths_.contains(path)) return path;
  if (paths_.size() >= limits::kMetricPathsMax) return "others";
  paths_.insert(path);
  return path;
}

void LoadMetrics::CountEvent(const std::string& model, const std::string& event) {
  metrics_->Counter(Metric::kWorkerEvents, {model, event}).Increment();
}

void LoadMetrics::CountLoaded(const Load& load) {
  const std::string path = PathLabel(load.path);
  CountEvent(load.model, "loaded");
  metrics_->Counter(Metric::kLoadAttemptCount, {path, "success"}).Increment();
  metrics_->Counter(Metric::kLoadLatency, {path})
      .Increment(absl::ToDoubleMicroseconds(load.load_time));
  metrics_->Histogram(Metric::kLoadTime, {load.model})
      .Observe(absl::ToDoubleMicroseconds(load.load_time));
  if (load.warm_up_runs == 0) return;
  metrics_->Histogram(Metric::kWarmUpTime, {load.model})
      .Observe(absl::ToDoubleMicroseconds(load.warm_up_time));
  metrics_->Histogram(Metric::kWarmUpLatency, {path, "OK"})
      .Observe(absl::ToDoubleMicroseconds(load.warm_up_time));
  if (load.records_replayed == 0) return;
  metrics_->Counter(Metric::kWarmUpRecordsRead, {path, "OK"})
      .Increment(static_cast<double>(load.records_replayed));
}

void LoadMetrics::CountLoadFailed(const std::string& model, const std::string& path) {
  CountEvent(model, "load_failed");
  metrics_->Counter(Metric::kLoadAttemptCount, {PathLabel(path), "fail"}).Increment();
}

}  // namespace tensord::obs
