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
  kWarmUpLatency,
  kWarmUpRecordsRead,
  kRequestLogCount,
  kBatchQueueLatency,
  kBatchRunCount,
  kBatchPaddingSize,
  kBatchInputSize,
  kBatchProcessedSize,
  kLoadAttemptCount,
  kLoadLatency,
  kGraphRuns,
  kGraphRunTime,
  kGraphRunTimeHistogram,
  // Ours.
  kRequests,
  kRequestTime,
  kStageTime,
  kQueueCalls,
  kInFlightRuns,
  kBatchRows,
  kVersionState,
  kReplicas,
  kWorkerRestarts,
  kSandboxGrade,
  kSandboxStage,
  kWorkerLost,
  kWastedRunTime,
  kCopiedBytes,
  kPssBytes,
  kBudgetBytes,
  kConnections,
  kShed,
  kRefusedEarly,
  kWorkerEvents,
  kLoadTime,
  kWarmUpTime,
  kAccessLogLines,
  kSourceOk,
  kCount,
};

inline constexpr Buckets kLatencyBuckets = {10, 1.8, 33};  // The original's, microseconds.
inline constexpr Buckets kCoarseBuckets = {10, 3.24, 17};  // Every second one of them.
inline constexpr Buckets kRowBuckets = {1, 2, 12};
inline constexpr Buckets kExampleBuckets = {1, 2, 15};
inline constexpr Buckets kBatchSizeBuckets = {1, 2, 14};
inline constexpr Buckets kBatchQueueBuckets = {100, 1.2, 52};
inline constexpr Buckets kGraphRunBuckets = {1000, 2, 20};
inline constexpr Buckets kLoadBuckets = {1000, 2, 22};  // A millisecond to an hour.

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
    {":tensorflow:serving:model_warmup_latency", MetricKind::kHistogram, "model_path,status",
     "Microseconds of warming a version up, with records or with zeros.", kLatencyBuckets},
    {":tensorflow:serving:model_warmup_records_read", MetricKind::kCounter, "model_path,status",
     "Warm-up records that were replayed."},
    {":tensorflow:serving:request_log_count", MetricKind::kCounter, "model_name,status_code",
     "Sampled requests: OK went into the log, RESOURCE_EXHAUSTED were dropped because the disk did "
     "not keep up, UNAVAILABLE could not be written."},
    {":tensorflow:serving:batching_session:queuing_latency", MetricKind::kHistogram,
     "thread_pool_name",
     "Microseconds that calls waited to be batched, with --enable_batching; as the following four.",
     kBatchQueueBuckets},
    {":tensorflow:serving:batching_session:wrapped_run_count", MetricKind::kCounter, "",
     "Batches run."},
    {":tensorflow:serving:batching_session:padding_size", MetricKind::kHistogram,
     "execution_batch_size", "Rows that filled a batch up to an allowed size.", kBatchSizeBuckets},
    {":tensorflow:serving:batching_session:input_batch_size", MetricKind::kHistogram, "",
     "Rows of each input of each call.", kBatchSizeBuckets},
    {":tensorflow:serving:batching_session:processed_batch_size", MetricKind::kHistogram, "",
     "Rows of each batch, padding included.", kBatchSizeBuckets},
    {":tensorflow:cc:saved_model:load_attempt_count", MetricKind::kCounter, "model_path,status",
     "Loads that ended: success or fail. A worker that is started again loads again."},
    {":tensorflow:cc:saved_model:load_latency", MetricKind::kCounter, "model_path",
     "Microseconds of all loads that succeeded."},
    {":tensorflow:core:graph_runs", MetricKind::kCounter, "", "Runs of all models' sessions."},
    {":tensorflow:core:graph_run_time_usecs", MetricKind::kCounter, "",
     "Microseconds of all runs."},
    {":tensorflow:core:graph_run_time_usecs_histogram", MetricKind::kHistogram, "",
     "Microseconds of each run.", kGraphRunBuckets},

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
    {"tensord_version_state", MetricKind::kGauge, "model_name,version,state",
     "1 for the state a version is in."},
    {"tensord_replicas", MetricKind::kGauge, "model_name,version,kind",
     "Workers of a version: those that serve (live), and those that it should have (wanted)."},
    {"tensord_worker_restarts", MetricKind::kGauge, "model_name,version",
     "Workers started again after a death."},
    {"tensord_sandbox_grade", MetricKind::kGauge, "model_name,version",
     "What the sandbox of a version's workers is worth: 4 for grade A, 3 B, 2 C, 1 D."},
    {"tensord_sandbox_stage", MetricKind::kGauge, "model_name,version",
     "How far that sandbox went: 0 there is none, 1 before the model was read, 2 once it was "
     "warm."},
    {"tensord_worker_lost_runs_total", MetricKind::kCounter, "model_name,version",
     "Runs whose worker died."},
    {"tensord_wasted_run_seconds_total", MetricKind::kCounter, "model_name,version",
     "Time of runs that was for callers who had gone when they ended: of each run the part of its "
     "calls."},
    {"tensord_copied_bytes_total", MetricKind::kCounter, "model_name,version",
     "Tensor bytes copied in user space: from a gRPC connection into a call's memory, from there "
     "into a worker's, and out of a worker's."},
    {"tensord_pss_bytes", MetricKind::kGauge, "process,model_name,version",
     "Proportional set size of a process, read when this page is made."},
    {"tensord_request_bytes_held", MetricKind::kGauge, "",
     "Bytes of request bodies held now, out of --request_bytes_budget."},
    {"tensord_connections", MetricKind::kGauge, "", "Open client connections."},
    {"tensord_unserved_calls_total", MetricKind::kCounter, "model_name,version,reason",
     "Calls that the scheduler answered without a run's result: queue_full, too_late, shed "
     "(retries "
     "and sheddable calls, under pressure), share (its client had more than its share), "
     "expired_queued, hopeless (could not have been answered in time any more), expired_running, "
     "cancelled, poison (such a call ended two workers)."},
    {"tensord_refused_early_total", MetricKind::kCounter, "model_name,version",
     "Calls among those that were refused before their body was read."},
    {"tensord_worker_events_total", MetricKind::kCounter, "model_name,event",
     "Workers that started, loaded, failed to load (load_failed), stopped when told, or died."},
    {"tensord_load_microseconds", MetricKind::kHistogram, "model_name",
     "Microseconds of each load, as the worker measured it.", kLoadBuckets},
    {"tensord_warm_up_microseconds", MetricKind::kHistogram, "model_name",
     "Microseconds of each warm-up.", kLoadBuckets},
    {"tensord_access_log_lines_total", MetricKind::kCounter, "result",
     "Lines of --access_log: written, or dropped because the disk did not keep up."},
    {"tensord_source_ok", MetricKind::kGauge, "model_name",
     "1 while the model's base path can be listed and has a version that is asked for, else 0."},
}};

}  // namespace tensord::obs
