// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "obs/metric_text.h"

namespace tensord::obs {
namespace {

constexpr size_t kMetricCount = kMetrics.size();

const MetricRow& RowOf(Metric metric) { return kMetrics[static_cast<size_t>(metric)]; }

std::vector<std::string> SplitLabels(std::string_view labels) {
  std::vector<std::string> names;
  while (!labels.empty()) {
    const size_t comma = labels.find(',');
    names.emplace_back(labels.substr(0, comma));
    labels.remove_prefix(comma == std::string_view::npos ? labels.size() : comma + 1);
  }
  return names;
}

prometheus::Histogram::BucketBoundaries Bounds(Metric metric) {
  const Buckets& buckets = RowOf(metric).buckets;
  prometheus::Histogram::BucketBoundaries bounds;
  double bound = buckets.first;
  for (int i = 0; i < buckets.count; ++i, bound *= buckets.factor) bounds.push_back(bound);
  return bounds;
}

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  std::array<prometheus::Family<prometheus::Counter>*, kMetricCount> counters{};
  std::array<prometheus::Family<prometheus::Gauge>*, kMetricCount> gauges{};
  std::array<prometheus::Family<prometheus::Histogram>*, kMetricCount> histograms{};
  base::Mutex mu;
  std::array<std::vector<prometheus::Gauge*>, kMetricCount> live_gauges ABSL_GUARDED_BY(mu);
  std::array<std::vector<prometheus::Counter*>, kMetricCount> live_totals ABSL_GUARDED_BY(mu);
};

namespace {

prometheus::Labels MakeLabels(Metric metric, const std::vector<std::string>& values) {
  const std::vector<std::string> names = SplitLabels(RowOf(metric).labels);
  TENSORD_CHECK(names.size() == values.size());
  prometheus::Labels labels;
  for (size_t i = 0; i < names.size(); ++i) labels[names[i]] = values[i];
  return labels;
}

}  // namespace

Metrics::Metrics() : state_(std::make_unique<State>()) {
  for (size_t i = 0; i < kMetricCount; ++i) {
    const MetricRow& row = kMetrics[i];
    const std::string name(row.name);
    const std::string help(row.help);
    switch (row.kind) {
      case MetricKind::kCounter:
        state_->counters[i] =
            &prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry);
        break;
      case MetricKind::kGauge:
        state_->gauges[i] =
            &prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry);
        break;
      case MetricKind::kHistogram:
        state_->histograms[i] =
            &prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry);
        break;
    }
  }
}

Metrics::~Metrics() = default;

prometheus::Counter& Metrics::Counter(Metric metric, const std::vector<std::string>& labels) {
  return state_->counters[static_cast<size_t>(metric)]->Add(MakeLabels(metric, labels));
}

prometheus::Gauge& Metrics::Gauge(Metric metric, const std::vector<std::string>& labels) {
  const auto index = static_cast<size_t>(metric);
  prometheus::Gauge& gauge = state_->gauges[index]->Add(MakeLabels(metric, labels));
  base::MutexLock lock(&state_->mu);
  state_->live_gauges[index].push_back(&gauge);
  return gauge;
}

prometheus::Histogram& Metrics::Histogram(Metric metric, const std::vector<std::string>& labels) {
  return state_->histograms[static_cast<size_t>(metric)]->Add(MakeLabels(metric, labels),
                                                              Bounds(metric));
}

void Metrics::Remove(Metric metric, prometheus::Counter* counter) {
  state_->counters[static_cast<size_t>(metric)]->Remove(counter);
}

void Metrics::Remove(Metric metric, prometheus::Histogram* histogram) {
  state_->histograms[static_cast<size_t>(metric)]->Remove(histogram);
}

void Metrics::SetTotal(Metric metric, const std::vector<std::string>& labels, double total) {
  prometheus::Counter& counter = Counter(metric, labels);
  counter.Increment(total - counter.Value());
  base::MutexLock lock(&state_->mu);
  state_->live_totals[static_cast<size_t>(metric)].push_back(&counter);
}

void Metrics::Clear(Metric metric) {
  const auto index = static_cast<size_t>(metric);
  base::MutexLock lock(&state_->mu);
  const auto clear = [](auto* family, auto& live) {
    std::ranges::sort(live);
    live.erase(std::unique(live.begin(), live.end()), live.end());
    for (auto* series : live) family->Remove(series);
    live.clear();
  };
  clear(state_->gauges[index], state_->live_gauges[index]);
  clear(state_->counters[index], state_->live_totals[index]);
}

std::map<std::string, int64_t> Metrics::CounterTotals(const std::vector<std::string>& names) const {
  std::map<std::string, int64_t> totals;
  for (const std::string& name : names) {
    std::string on_page = name;
    if (name.starts_with('/')) std::ranges::replace(on_page, '/', ':');
    for (size_t i = 0; i < kMetricCount; ++i) {
      if (kMetrics[i].name != on_page || state_->counters[i] == nullptr) continue;
      double total = 0;
      for (const prometheus::MetricFamily& family : state_->counters[i]->Collect()) {
        for (const prometheus::ClientMetric& series : family.metric) total += series.counter.value;
      }
      totals[name] = static_cast<int64_t>(total);
    }
  }
  return totals;
}

std::string Metrics::Page() const { return MetricText(state_->registry.Collect()); }

std::string_view StatusLabel(absl::StatusCode code) {
  constexpr std::array<std::string_view, 17> kLabels = {"OK",
                                                        "CANCELLED",
                                                        "UNKNOWN",
                                                        "INVALID_ARGUMENT",
                                                        "DEADLINE_EXCEEDED",
                                                        "NOT_FOUND",
                                                        "ALREADY_EXISTS",
                                                        "PERMISSION_DENIED",
                                                        "RESOURCE_EXHAUSTED",
                                                        "FAILED_PRECONDITION",
                                                        "ABORTED",
                                                        "OUT_OF_RANGE",
                                                        "UNIMPLEMENTED",
                                                        "INTERNAL",
                                                        "UNAVAILABLE",
                                                        "DATA_LOSS",
                                                        "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < kLabels.size() ? kLabels[index] : kLabels[2];
}

void Add(prometheus::Counter& counter, double value) { counter.Increment(value); }
void Set(prometheus::Gauge& gauge, double value) { gauge.Set(value); }
void Observe(prometheus::Histogram& histogram, double value) { histogram.Observe(value); }

}  // namespace tensord::obs
