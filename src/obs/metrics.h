// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
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

  // The same labels give the same series.
  // REQUIRES: the metric is of that kind and `labels` has as many values as the table has names.
  prometheus::Counter& Counter(Metric metric, const std::vector<std::string>& labels);
  prometheus::Gauge& Gauge(Metric metric, const std::vector<std::string>& labels);
  prometheus::Histogram& Histogram(Metric metric, const std::vector<std::string>& labels);
  // Takes a series off the page. REQUIRES: nobody uses it any more.
  void Remove(Metric metric, prometheus::Counter* counter);
  void Remove(Metric metric, prometheus::Histogram* histogram);
  // A counter whose value is counted elsewhere.
  void SetTotal(Metric metric, const std::vector<std::string>& labels, double total);
  // Forgets all gauges or totals of a metric; those still true are set again when the page is made.
  void Clear(Metric metric);

  // The sum over all series of each counter. Names as on the page, or in the original's form
  // ("/tensorflow/serving/request_count"); those that are no counter are left out.
  std::map<std::string, int64_t> CounterTotals(const std::vector<std::string>& names) const;

  // The page, in Prometheus' text format 0.0.4.
  std::string Page() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// "OK", "NOT_FOUND": the label values of request_count.
std::string_view StatusLabel(absl::StatusCode code);
void Add(prometheus::Counter& counter, double value);
void Set(prometheus::Gauge& gauge, double value);
void Observe(prometheus::Histogram& histogram, double value);

}  // namespace tensord::obs
