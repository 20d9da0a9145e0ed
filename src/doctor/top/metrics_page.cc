// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/top/metrics_page.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr size_t kSeriesMax = 1'000'000;  // 20,000 models have fewer.

struct Series {
  std::string_view name;
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;

  std::string Label(std::string_view label) const {
    const auto found = labels.find(label);
    return found == labels.end() ? "" : found->second;
  }
};

// Reads name="value" pairs up to the closing brace, which it drops, too. False: not such text.
bool ReadLabels(std::string_view* text, Series* series) {
  while (!text->empty() && text->front() != '}') {
    const size_t equals = text->find("=\"");
    if (equals == std::string_view::npos) return false;
    const std::string_view name = Trim(text->substr(0, equals));
    text->remove_prefix(equals + 2);
    std::string value;
    size_t at = 0;
    for (; at < text->size() && (*text)[at] != '"'; ++at) {
      if ((*text)[at] == '\\' && at + 1 < text->size()) ++at;
      value += (*text)[at];
    }
    if (at >= text->size()) return false;
    series->labels.emplace(name, std::move(value));
    text->remove_prefix(at + 1);
    if (!text->empty() && text->front() == ',') text->remove_prefix(1);
  }
  if (text->empty()) return false;
  text->remove_prefix(1);
  return true;
}

std::optional<double> Value(std::string_view text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  if (text == "NaN") return 0;
  return ToDouble(text);
}

std::optional<Series> ReadSeries(std::string_view line) {
  Series series;
  const size_t end = line.find_first_of("{ ");
  if (end == std::string_view::npos) return std::nullopt;
  series.name = line.substr(0, end);
  const bool labelled = line[end] == '{';
  line.remove_prefix(end + 1);
  if (labelled && !ReadLabels(&line, &series)) return std::nullopt;
  const auto fields = Split(line, " ");
  const auto value = fields.empty() ? std::nullopt : Value(fields[0]);
  if (!value.has_value()) return std::nullopt;
  series.value = *value;
  return series;
}

// One of a histogram's series, whose name ends with _bucket, _sum or _count.
void AddTo(Histogram* histogram, std::string_view suffix, const Series& series) {
  if (suffix == "_sum") histogram->sum += series.value;
  if (suffix == "_count") histogram->count += series.value;
  if (suffix != "_bucket") return;
  const auto bound = Value(series.Label("le"));
  if (bound.has_value()) histogram->buckets[*bound] += series.value;
}

void Use(const Series& series, ServerCounters* server) {
  if (!series.name.starts_with("tensord_")) return;
  const std::string model = series.Label("model_name");
  const std::string version = series.Label("version");
  if (model.empty() || version.empty()) return;
  const std::string_view name = series.name;
  ModelCounters& counters = server->models[{model, version}];
  if (name == "tensord_requests_total") {
    counters.requests += series.value;
    if (series.Label("status") != "OK") counters.errors += series.value;
  } else if (name == "tensord_unserved_calls_total") {
    counters.unserved += series.value;
  } else if (name == "tensord_queue_calls") {
    counters.queue = series.value;
  } else if (name == "tensord_in_flight_runs") {
    counters.in_flight = series.value;
  } else if (name == "tensord_stage_microseconds_sum") {
    counters.stage_microseconds[series.Label("stage")] += series.value;
  } else if (constexpr std::string_view kLatency = "tensord_request_microseconds";
             name.starts_with(kLatency)) {
    AddTo(&counters.latency, name.substr(kLatency.size()), series);
  } else if (constexpr std::string_view kRows = "tensord_batch_rows"; name.starts_with(kRows)) {
    AddTo(&counters.batch_rows, name.substr(kRows.size()), series);
  }
}

double Positive(double after, double before) { return std::max(0.0, after - before); }

}  // namespace

void Histogram::Add(const Histogram& other) {
  for (const auto& [bound, count_to] : other.buckets) buckets[bound] += count_to;
  sum += other.sum;
  count += other.count;
}

Histogram Histogram::Since(const Histogram& before) const {
  Histogram since;
  since.sum = Positive(sum, before.sum);
  since.count = Positive(count, before.count);
  for (const auto& [bound, count_to] : buckets) {
    const auto found = before.buckets.find(bound);
    since.buckets[bound] = Positive(count_to, found == before.buckets.end() ? 0 : found->second);
  }
  return since;
}

double Histogram::Quantile(double share) const {
  double below = 0;
  double lower = 0;
  const double wanted = share * count;
  if (count <= 0) return 0;
  for (const auto& [bound, count_to] : buckets) {
    if (count_to >= wanted && count_to > below) {
      if (bound == std::numeric_limits<double>::infinity()) return lower;
      return lower + (bound - lower) * (wanted - below) / (count_to - below);
    }
    below = count_to;
    lower = bound;
  }
  return lower;
}

absl::StatusOr<ServerCounters> ParseMetrics(std::string_view page) {
  ServerCounters server;
  size_t read = 0;
  for (const std::string_view line : Split(page, "\n")) {
    if (line.starts_with("#")) continue;
    const auto series = ReadSeries(line);
    if (!series.has_value() || ++read > kSeriesMax) {
      return absl::InvalidArgumentError(
          base::Cat("no metrics page; at \"", Printable(line.substr(0, 60)), "\""));
    }
    Use(*series, &server);
  }
  return server;
}

std::vector<ModelRates> RatesOf(const ServerCounters& before, const ServerCounters& after,
                                double seconds) {
  std::vector<ModelRates> all;
  for (const auto& [key, now] : after.models) {
    const auto found = before.models.find(key);
    const ModelCounters then = found == before.models.end() ? ModelCounters() : found->second;
    ModelRates& rates = all.emplace_back();
    rates.name = key.first;
    rates.version = key.second;
    const double divisor = seconds > 0 ? seconds : 1;
    rates.requests = Positive(now.requests, then.requests) / divisor;
    rates.errors = Positive(now.errors, then.errors) / divisor;
    rates.unserved = Positive(now.unserved, then.unserved) / divisor;
    rates.queue = now.queue;
    rates.in_flight = now.in_flight;
    const Histogram latency = now.latency.Since(then.latency);
    rates.p50_microseconds = latency.Quantile(0.5);
    rates.p99_microseconds = latency.Quantile(0.99);
    rates.batch_rows = now.batch_rows.Since(then.batch_rows).Mean();
    double time = 0;
    for (const auto& [stage, sum] : now.stage_microseconds) {
      const auto old = then.stage_microseconds.find(stage);
      const double spent = Positive(sum, old == then.stage_microseconds.end() ? 0 : old->second);
      time += spent;
      if (stage == "queue") rates.queue_share = spent;
      if (stage == "run") rates.run_share = spent;
    }
    rates.queue_share = time > 0 ? rates.queue_share / time : 0;
    rates.run_share = time > 0 ? rates.run_share / time : 0;
  }
  return all;
}

}  // namespace tensord::doctor
