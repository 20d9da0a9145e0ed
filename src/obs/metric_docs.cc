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

// What TensorFlow Serving's page has and this one has not.
struct Absent {
  std::string_view names;
  std::string_view why;
};
constexpr Absent kAbsent[] = {
    {"`:tensorflow:serving:mlmd_map`",
     "its value is a string, which the original's page prints as 0"},
    {"`:tensorflow:serving:saved_model_with_batching:queuing_latency`",
     "belongs to TFRT, which the stock server does not use; see "
     "`batching_session:queuing_latency`"},
    {"`:tensorflow:cc:saved_model:load_latency_by_stage`",
     "TensorFlow's C API does not tell the stages of a load apart"},
    {"`:tensorflow:core:graph_build_calls`, `graph_build_time_usecs`, `graph_optimization_usecs`, "
     "`saved_model:read:count`, `xla_compilations` and `:tensorflow:data:*`",
     "counted inside TensorFlow, which runs in processes of its own here, and its C API gives no "
     "access to them"},
    {"values of status other than OK in `model_warmup_latency` and `model_warmup_records_read`",
     "a record that fails is a warning in the log, and the rest is replayed"},
};

}  // namespace

std::string MetricDocs() {
  std::string page =
      "# Metrics\n\n"
      "```\n"
      "echo 'prometheus_config { enable: true }' > monitoring.config\n"
      "tensord serve --rest_api_port=8501 --monitoring_config_file=monitoring.config ...\n"
      "curl localhost:8501/monitoring/prometheus/metrics\n"
      "```\n\n"
      "The page is served on the REST port when `--monitoring_config_file` enables it, at\n"
      "`/monitoring/prometheus/metrics` unless that file names another path. Made by\n"
      "`tensord docs metrics` from `src/obs/metric_table.h`.\n\n"
      "Names that begin with a colon are TensorFlow Serving's, with its labels, units and "
      "buckets;\n"
      "a series appears with its first event. What a client writes never makes a series: model\n"
      "names that are not configured count as `unknown`, versions and signatures that were not\n"
      "matched as nothing.\n\n"
      "| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n";
  for (const MetricRow& row : kMetrics) {
    page += base::Cat("| `", row.name, "` | ", KindName(row.kind), " | ", row.labels, " | ",
                      row.help, " |\n");
  }
  page +=
      "\nCounters of a version leave the page some time after it was unloaded: with the 64 "
      "versions\n"
      "unloaded last, they stay.\n\n"
      "## Not here\n\n"
      "What TensorFlow Serving's page has and this one has not.\n\n"
      "| metric | why |\n| --- | --- |\n";
  for (const Absent& absent : kAbsent) {
    page += base::Cat("| ", absent.names, " | ", absent.why, " |\n");
  }
  return page;
}

}  // namespace tensord::obs
