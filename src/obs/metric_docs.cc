// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/metric_docs.h"

#include "base/text.h"
#include "obs/metric_table.h"

namespace tensord::obs {
namespace {

std::string_view KindName(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "";
}

}  // namespace

std::string MetricDocs() {
  std::string page =
      "# Metrics\n\n"
      "The page is served on the REST port when `--monitoring_config_file` enables it, at\n"
      "`/monitoring/prometheus/metrics` unless that file names another path. Made by\n"
      "`tensord docs metrics` from `src/obs/metric_table.h`.\n\n"
      "| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n";
  for (const MetricRow& row : kMetrics) {
    page += base::Cat("| `", row.name, "` | ", KindName(row.kind), " | ", row.labels, " | ",
                      row.help, " |\n");
  }
  return page;
}

}  // namespace tensord::obs
