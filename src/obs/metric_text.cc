// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/metric_text.h"

#include <fmt/core.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "obs/metric_table.h"

namespace tensord::obs {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void AppendEscaped(std::string_view value, std::string* out) {
  for (const char c : value) {
    if (c == '\n') {
      out->append("\\n");
      continue;
    }
    if (c == '\\' || c == '"') out->push_back('\\');
    out->push_back(c);
  }
}

// A family's label names in the table's order.
std::string_view LabelsOf(std::string_view family) {
  for (const MetricRow& row : kMetrics) {
    if (row.name == family) return row.labels;
  }
  return {};
}

// `model_name="half",API="predict"`.
std::string LabelText(std::string_view order, const ClientMetric& metric) {
  std::string text;
  while (!order.empty()) {
    const std::string_view name = order.substr(0, order.find(','));
    order.remove_prefix(std::min(order.size(), name.size() + 1));
    const auto label = std::ranges::find(metric.label, name,
                                         [](const auto& l) { return std::string_view(l.name); });
    if (label == metric.label.end()) continue;
    if (!text.empty()) text.push_back(',');
    text += base::Cat(name, "=\"");
    AppendEscaped(label->value, &text);
    text.push_back('"');
  }
  return text;
}

// Whole numbers in full, others so that they read back as the same.
std::string Number(double value) {
  constexpr double kExactMax = 9007199254740992;  // 2^53
  if (std::trunc(value) == value && std::abs(value) < kExactMax) {
    return base::Cat(static_cast<int64_t>(value));
  }
  return base::Cat(value);
}

void AppendLine(std::string_view name, std::string_view ending, std::string_view labels,
                std::string_view value, std::string* out) {
  *out += base::Cat(name, ending, "{", labels, "} ", value, "\n");
}

void AppendHistogram(const std::string& name, const std::string& labels,
                     const ClientMetric::Histogram& histogram, std::string* out) {
  const std::string before = labels.empty() ? "" : labels + ",";
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    const bool last = std::isinf(bucket.upper_bound);
    const std::string bound = last ? "+Inf" : fmt::format("{:.6g}", bucket.upper_bound);
    AppendLine(name, "_bucket", base::Cat(before, "le=\"", bound, "\""),
               base::Cat(bucket.cumulative_count), out);
  }
  AppendLine(name, "_sum", labels, Number(histogram.sample_sum), out);
  AppendLine(name, "_count", labels, base::Cat(histogram.sample_count), out);
}

std::string_view TypeName(MetricType type) {
  if (type == MetricType::Counter) return "counter";
  return type == MetricType::Gauge ? "gauge" : "histogram";
}

}  // namespace

std::string MetricText(const std::vector<MetricFamily>& families) {
  std::string out;
  for (const MetricFamily& family : families) {
    if (family.metric.empty()) continue;
    out += base::Cat("# HELP ", std::string_view(family.name), " ", std::string_view(family.help),
                     "\n# TYPE ", std::string_view(family.name), " ", TypeName(family.type), "\n");
    const std::string_view order = LabelsOf(family.name);
    for (const ClientMetric& metric : family.metric) {
      const std::string labels = LabelText(order, metric);
      if (family.type == MetricType::Histogram) {
        AppendHistogram(family.name, labels, metric.histogram, &out);
      } else {
        const bool counter = family.type == MetricType::Counter;
        AppendLine(family.name, "", labels,
                   Number(counter ? metric.counter.value : metric.gauge.value), &out);
      }
    }
  }
  return out;
}

}  // namespace tensord::obs
