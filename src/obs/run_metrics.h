// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "obs/lazy.h"
#include "obs/metrics.h"

namespace tensord::obs {

// The original's series about runs and batches, which know no model.
// Threads: safe from any.
class RunMetrics {
 public:
  explicit RunMetrics(Metrics* metrics) : metrics_(metrics) {}

  void CountRun(absl::Duration run_time);
  // A batch that the operator's parameters formed.
  void CountBatch(int64_t rows, int64_t pad_rows);
  // A call that ran in one.
  void CountBatchedCall(absl::Duration wait, int64_t rows, size_t inputs);

 private:
  prometheus::Histogram* PaddingOf(int64_t batch_rows);

  Metrics* const metrics_;
  Lazy<prometheus::Counter> runs_;
  Lazy<prometheus::Counter> run_time_;
  Lazy<prometheus::Histogram> run_times_;
  Lazy<prometheus::Counter> batches_;
  Lazy<prometheus::Histogram> batch_rows_;
  Lazy<prometheus::Histogram> call_rows_;
  Lazy<prometheus::Histogram> queue_wait_;
  base::Mutex mu_;
  std::map<int64_t, prometheus::Histogram*> padding_ ABSL_GUARDED_BY(mu_);  // By batch size.
};

// What happens to workers and their loads. Rare: it looks its series up each time.
// Threads: safe from any.
class LoadMetrics {
 public:
  struct Load {
    std::string model = {};
    std::string path = {};  // Of the version's directory.
    absl::Duration load_time = {};
    absl::Duration warm_up_time = {};
    int64_t warm_up_runs = 0;
    int64_t records_replayed = 0;  // Recorded requests that ran.
  };

  explicit LoadMetrics(Metrics* metrics) : metrics_(metrics) {}

  // "started", "stopped", "died".
  void CountEvent(const std::string& model, const std::string& event);
  void CountLoaded(const Load& load);
  void CountLoadFailed(const std::string& model, const std::string& path);

 private:
  // The path, or "others" when there are kMetricPathsMax: years bring ever new versions.
  std::string PathLabel(const std::string& path);

  Metrics* const metrics_;
  base::Mutex mu_;
  std::set<std::string> paths_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensord::obs
