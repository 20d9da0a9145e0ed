// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <string_view>

// Every metric, declared once. docs/metrics.md and the dashboards are checked against this table.
namespace tensord::obs {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

struct MetricRow {
  std::string_view name;
  MetricKind kind;
  std::string_view labels;  // Comma-separated label names, in the order of the label values.
  std::string_view help;
};

// Indexes into kMetrics.
enum class Metric : size_t {
  kRequestCount,
  kRequestLatency,
  kRuntimeLatency,
  kQueueCalls,
  kInFlightRuns,
  kBatchRows,
  kQueueWait,
  kVersionState,
  kWorkerRestarts,
  kWorkerLost,
  kCopiedBytes,
  kPssBytes,
  kBudgetBytes,
  kConnections,
  kShed,
  kCount,
};

// The first three are TensorFlow Serving's own, names and labels as dashboards know them
// (microseconds). The model_name label holds configured names only; any other counts as "unknown",
// so that clients cannot make new series.
inline constexpr std::array<MetricRow, static_cast<size_t>(Metric::kCount)> kMetrics = {{
    {":tensorflow:serving:request_count", MetricKind::kCounter, "model_name,status",
     "Requests answered."},
    {":tensorflow:serving:request_latency", MetricKind::kHistogram, "model_name,API,entrypoint",
     "Microseconds from a request's first byte to its answer; successes only, as the original."},
    {":tensorflow:serving:runtime_latency", MetricKind::kHistogram, "model_name,API,runtime",
     "Microseconds inside the TensorFlow runtime, per run."},
    {"tensord_queue_calls", MetricKind::kGauge, "model_name,version",
     "Calls waiting for a worker."},
    {"tensord_in_flight_runs", MetricKind::kGauge, "model_name,version", "Runs inside workers."},
    {"tensord_batch_rows", MetricKind::kHistogram, "model_name,version", "Rows a run."},
    {"tensord_queue_wait_microseconds", MetricKind::kHistogram, "model_name,version",
     "Microseconds from a call's arrival in the queue to its run."},
    {"tensord_version_state", MetricKind::kGauge, "model_name,version,state",
     "1 for the state a version is in."},
    {"tensord_worker_restarts", MetricKind::kGauge, "model_name,version",
     "Workers started again after a death."},
    {"tensord_worker_lost_runs_total", MetricKind::kGauge, "model_name,version",
     "Runs whose worker died."},
    {"tensord_copied_bytes_total", MetricKind::kGauge, "model_name,version",
     "Tensor bytes copied in user space between a client's bytes and a worker, both ways."},
    {"tensord_pss_bytes", MetricKind::kGauge, "process,model_name,version",
     "Proportional set size of a process, read when this page is made."},
    {"tensord_request_bytes_held", MetricKind::kGauge, "",
     "Bytes of request bodies held now, out of --request_bytes_budget."},
    {"tensord_connections", MetricKind::kGauge, "", "Open client connections."},
    {"tensord_unserved_calls_total", MetricKind::kGauge, "model_name,version,reason",
     "Calls that the scheduler answered without a run's result: queue_full, too_late, shed, "
     "expired_queued, expired_running, cancelled."},
}};

}  // namespace tensord::obs
