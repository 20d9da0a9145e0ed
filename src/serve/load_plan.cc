// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/load_plan.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/text.h"
#include "tensord/session_config.pb.h"

namespace tensord::serve {
namespace {

// The size of the range that systemd gives to dynamic users, which is where the option's default
// begins: each worker of this front gets another user until the range comes round.
constexpr uint32_t kWorkerUsers = 4336;

models::VersionPolicy ToPolicy(const config::VersionPolicy& from) {
  models::VersionPolicy policy;
  switch (from.kind) {
    case config::VersionPolicy::Kind::kLatest:
      policy.kind = models::VersionPolicy::Kind::kLatest;
      break;
    case config::VersionPolicy::Kind::kAll:
      policy.kind = models::VersionPolicy::Kind::kAll;
      break;
    case config::VersionPolicy::Kind::kSpecific:
      policy.kind = models::VersionPolicy::Kind::kSpecific;
      break;
  }
  policy.latest = from.latest;
  policy.specific = from.specific;
  return policy;
}

uint32_t RuntimeOf(config::ModelSettings::OneDnn onednn) {
  switch (onednn) {
    case config::ModelSettings::OneDnn::kOn:
      return kRuntimeOneDnnOn;
    case config::ModelSettings::OneDnn::kOff:
      return kRuntimeOneDnnOff;
    case config::ModelSettings::OneDnn::kAuto:
      break;
  }
  return kRuntimeDefault;
}

models::WorkerSettings PlanWorker(const config::ModelSettings& settings,
                                  const config::ServerOptions& options) {
  models::WorkerSettings worker;
  worker.executors = settings.executors.value_or(0);
  worker.intra_op_threads = settings.intra_op_threads.value_or(0);
  worker.inter_op_threads = settings.inter_op_threads.value_or(0);
  worker.warm_up = options.enable_model_warmup && settings.synthetic_warm_up.value_or(true);
  for (const int64_t rows : settings.warm_up_rows) {
    worker.warm_up_rows.push_back(static_cast<int>(rows));
  }
  worker.recorded_warm_up = options.enable_model_warmup;
  worker.warm_up_strict = settings.warm_up_strict.value_or(false);
  worker.warm_up_repeats = options.num_request_iterations_for_warmup;
  worker.worker_memory_bytes_max = settings.memory_limit_bytes.value_or(0);
  worker.runtime = RuntimeOf(settings.onednn);
  return worker;
}

// The first that is set: the model's own, the flag for this pool, the flag for both, the CPUs.
int PoolThreads(int own, int64_t flag, int64_t both_flag, bool one_is_set, int cpus) {
  if (own > 0) return own;
  if (flag > 0) return static_cast<int>(flag);
  if (!one_is_set && both_flag > 0) return static_cast<int>(both_flag);
  return cpus;
}

}  // namespace

const config::ModelSettings& SettingsOf(const SettingsByModel& settings, const std::string& model) {
  static const config::ModelSettings kUnset;
  const auto at = settings.find(model);
  return at == settings.end() ? kUnset : at->second;
}

std::vector<models::ModelConfig> PlanModels(const std::vector<config::ModelEntry>& entries,
                                            const SettingsByModel& settings,
                                            const config::ServerOptions& options) {
  std::vector<models::ModelConfig> configs;
  for (const config::ModelEntry& entry : entries) {
    const config::ModelSettings& own = SettingsOf(settings, entry.name);
    models::ModelConfig config;
    config.name = entry.name;
    config.base_path = entry.base_path;
    config.platform = entry.platform;
    config.policy = ToPolicy(entry.policy);
    config.labels = entry.labels;
    config.replicas = own.replicas.value_or(1);
    config.worker = PlanWorker(own, options);
    configs.push_back(std::move(config));
  }
  return configs;
}

models::Options PlanCatalog(const config::ServerOptions& options, uint64_t memory_limit_bytes) {
  models::Options plan;
  plan.poll_period = absl::Seconds(options.file_system_poll_wait_seconds);
  plan.load_retries_max = options.max_num_load_retries;
  plan.load_retry_interval =
      absl::Microseconds(std::max<int64_t>(options.load_retry_interval_micros, 0));
  plan.allow_labels_for_unavailable = options.allow_version_labels_for_unavailable_models;
  plan.memory_bytes_max = memory_limit_bytes;
  plan.unload_missing = options.unload_missing_versions;
  return plan;
}

std::string SessionConfig(const models::WorkerSettings& settings,
                          const config::ServerOptions& options, const Machine& machine) {
  const bool one_is_set =
      options.tensorflow_intra_op_parallelism > 0 || options.tensorflow_inter_op_parallelism > 0;
  const int64_t both = options.tensorflow_session_parallelism;
  tensorflow::ConfigProto config;
  config.set_intra_op_parallelism_threads(PoolThreads(settings.intra_op_threads,
                                                      options.tensorflow_intra_op_parallelism, both,
                                                      one_is_set, machine.cpus));
  config.set_inter_op_parallelism_threads(PoolThreads(settings.inter_op_threads,
                                                      options.tensorflow_inter_op_parallelism, both,
                                                      one_is_set, machine.cpus));
  config.set_allow_soft_placement(true);
  config.mutable_gpu_options()->set_allow_growth(true);
  return config.SerializeAsString();
}

channel::LoadRecord PlanLoad(const fleet::WorkerKey& key, const models::VersionFiles& files,
                             const models::ModelConfig& config,
                             const config::ModelSettings& settings,
                             const config::ServerOptions& options, const Machine& machine,
                             const sched::QueueOptions& queue, uint64_t worker_number) {
  channel::LoadRecord load;
  load.model = key.model;
  load.version = key.version;
  load.directory = files.directory;
  load.tags = absl::StrSplit(options.saved_model_tags, ',', absl::SkipEmpty());
  load.session_config = SessionConfig(config.worker, options, machine);
  load.op_libraries = absl::StrSplit(options.op_library, ',', absl::SkipEmpty());
  for (const std::string& library : settings.op_libraries) load.op_libraries.push_back(library);
  load.executors =
      static_cast<uint32_t>(config.worker.executors > 0 ? config.worker.executors : machine.cpus);
  load.runs_in_caller = settings.runs_in_caller.value_or(true);
  load.synthetic_warm_up =
      config.worker.warm_up && !PlanWarmUp(files, config.worker, queue).has_value();
  load.warm_up_rows = WarmUpRows(config.worker, queue);
  load.sandbox = options.sandbox != "off" && settings.sandbox.value_or(true);
  if (machine.root && load.sandbox && options.worker_user_base > 0) {
    load.sandbox_user = static_cast<uint32_t>(options.worker_user_base) +
                        static_cast<uint32_t>(worker_number % kWorkerUsers);
  }
  return load;
}

std::vector<int64_t> WarmUpRows(const models::WorkerSettings& settings,
                                const sched::QueueOptions& queue) {
  if (!settings.warm_up_rows.empty()) {
    return {settings.warm_up_rows.begin(), settings.warm_up_rows.end()};
  }
  int64_t rows_max = queue.rows_max;
  if (queue.batching) {
    if (!queue.batching->allowed_batch_sizes.empty()) return queue.batching->allowed_batch_sizes;
    rows_max = queue.batching->ExecutionRowsMax().value_or(rows_max);
  }
  std::vector<int64_t> rows = {1};
  while (rows.back() * 2 <= rows_max && rows.size() < limits::kLoadListMax) {
    rows.push_back(rows.back() * 2);
  }
  if (rows.back() < rows_max && queue.batching) rows.push_back(rows_max);
  return rows;
}

std::optional<WarmUpPlan> PlanWarmUp(const models::VersionFiles& files,
                                     const models::WorkerSettings& settings,
                                     const sched::QueueOptions& queue) {
  if (!settings.recorded_warm_up || files.warm_up_bytes == 0) return std::nullopt;
  return WarmUpPlan{.file = base::Cat(files.directory, "/assets.extra/tf_serving_warmup_requests"),
                    .repeats = std::max(1, settings.warm_up_repeats),
                    .strict = settings.warm_up_strict,
                    .rows = WarmUpRows(settings, queue)};
}

void PlanBatching(const std::optional<config::BatchingParameters>& parameters,
                  const config::ModelSettings& settings, sched::QueueOptions* options) {
  if (parameters) {
    sched::BatchingParameters set;
    set.max_batch_size = parameters->max_batch_size;
    if (parameters->batch_timeout_micros) {
      set.batch_timeout = absl::Microseconds(*parameters->batch_timeout_micros);
    }
    set.max_enqueued_batches = parameters->max_enqueued_batches;
    set.num_batch_threads = parameters->num_batch_threads;
    options->batching = std::move(set);
  } else if (settings.batch_timeout_micros) {
    sched::BatchingParameters set;
    set.batch_timeout = absl::Microseconds(*settings.batch_timeout_micros);
    options->batching = std::move(set);
  }
  if (settings.batch_rows_max) options->rows_max = *settings.batch_rows_max;
  if (!settings.batching_enabled.value_or(true)) options->rows_max = 1;
}

}  // namespace tensord::serve
