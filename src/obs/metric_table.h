// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <string_view>

// Every metric, declared once. docs/metrics.md and the dashboards are checked against this table.
namespace tensord::obs {

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

// first * factor^k for k = 0..count-1, and infinity.
struct Buckets {
  double first = 0;
  double factor = 0;
  int count = 0;
};

struct MetricRow {
  std::string_view name;
  MetricKind kind;
  std::string_view labels;  // Comma-separated label names, in the order of the label values.
  std::string_view help;
  Buckets buckets = {};  // Of a histogram.
};

// Indexes into kMetrics.
enum class Metric : size_t {
  // The original's.
  kRequestCount,
  kRequestLatency,
  kRuntimeLatency,
  kExampleCounts,
  kExampleCountTotal,
  // Ours.
  kRequests,
  kRequestTime,
  kStageTime,
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

inline constexpr Buckets kLatencyBuckets = {10, 1.8, 33};  // The original's, microseconds.
inline constexpr Buckets kCoarseBuckets = {10, 3.24, 17};  // Every second one of them.
inline constexpr Buckets kRowBuckets = {1, 2, 12};
inline constexpr Buckets kExampleBuckets = {1, 2, 15};

// Names that begin with a colon are TensorFlow Serving's own, with its labels, units and buckets.
// Label values that a client chooses are bounded: model_name holds configured names only, any other
// counts as "unknown"; version and signature hold what a request was matched with, else nothing.
inline constexpr std::array<MetricRow, static_cast<size_t>(Metric::kCount)> kMetrics = {{
    {":tensorflow:serving:request_count", MetricKind::kCounter, "model_name,status",
     "Requests answered: Predict, Classify and Regress over gRPC, every call of the REST API."},
    {":tensorflow:serving:request_latency", MetricKind::kHistogram, "model_name,API,entrypoint",
     "Microseconds from a request's first byte to its answer's last; successes only, as the "
     "original. API is Predict, Classify, Regress over gRPC, predict, classify, regress or nothing "
     "over REST.",
     kLatencyBuckets},
    {":tensorflow:serving:runtime_latency", MetricKind::kHistogram, "model_name,API,runtime",
     "Microseconds inside the TensorFlow runtime of each request that a run answered; requests of "
     "one batch count its whole time.",
     kLatencyBuckets},
    {":tensorflow:serving:request_example_counts", MetricKind::kHistogram, "model",
     "Examples of a MultiInference request.", kExampleBuckets},
    {":tensorflow:serving:request_example_count_total", MetricKind::kCounter, "model",
     "Examples of all MultiInference requests."},

    {"tensord_requests_total", MetricKind::kCounter,
     "model_name,version,signature,method,protocol,status",
     "Requests that ended, whatever became of them, health checks and this page left out. "
     "CANCELLED "
     "is a client that left before its answer; one that left at its own deadline is "
     "DEADLINE_EXCEEDED."},
    {"tensord_request_microseconds", MetricKind::kHistogram,
     "model_name,version,signature,method,protocol,status",
     "Microseconds from a request's first byte until the kernel took its answer's last byte, "
     "failures too.",
     kLatencyBuckets},
    {"tensord_stage_microseconds", MetricKind::kHistogram, "model_name,version,protocol,stage",
     "Where that time went, for requests that got an answer: read (until the body was complete), "
     "parse (decode and check), queue (until a worker got it), run (until its result was back), "
     "write (encode, and until the kernel took the last byte).",
     kCoarseBuckets},
    {"tensord_queue_calls", MetricKind::kGauge, "model_name,version",
     "Calls waiting for a worker."},
    {"tensord_in_flight_runs", MetricKind::kGauge, "model_name,version", "Runs inside workers."},
    {"tensord_batch_rows", MetricKind::kHistogram, "model_name,version", "Rows a run.",
     kRowBuckets},
    {"tensord_queue_wait_microseconds", MetricKind::kHistogram, "model_name,version",
     "Microseconds from a call's arrival in the queue to its run.", kCoarseBuckets},
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
