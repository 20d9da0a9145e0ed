// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/load_plan.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/sched_limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/model_info.h"
#include "tensord/session_config.pb.h"

namespace tensord::serve {
namespace {

// The size of the range that systemd gives to dynamic users, which is where the option's default
// begins: each worker of this front gets another user until the range comes round.
constexpr uint32_t kWorkerUsers = 4336;

// A second session in a worker is a convenience: no worker may take more than this part of the
// memory for it.
constexpr uint64_t kNarrowMemoryShare = 16;

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

uint32_t RuntimeOf(const config::ModelSettings& settings,
                   const config::PlatformSettings& platform) {
  switch (settings.onednn) {
    case config::ModelSettings::OneDnn::kOn:
      return kRuntimeOneDnnOn;
    case config::ModelSettings::OneDnn::kOff:
      return kRuntimeOneDnnOff;
    case config::ModelSettings::OneDnn::kAuto:
      break;
  }
  return platform.bfloat16 ? kRuntimeOneDnnOn : kRuntimeDefault;  // Its pass needs oneDNN.
}

models::WorkerSettings PlanWorker(const config::ModelSettings& settings,
                                  const config::PlatformSettings& platform) {
  models::WorkerSettings worker;
  worker.executors = settings.executors.value_or(0);
  worker.intra_op_threads = settings.intra_op_threads.value_or(0);
  worker.inter_op_threads = settings.inter_op_threads.value_or(0);
  worker.warm_up = platform.warm_up && settings.synthetic_warm_up.value_or(true);
  for (const int64_t rows : settings.warm_up_rows) {
    worker.warm_up_rows.push_back(static_cast<int>(rows));
  }
  worker.recorded_warm_up = platform.warm_up;
  worker.warm_up_strict = settings.warm_up_strict.value_or(false);
  worker.warm_up_repeats = platform.warm_up_repeats;
  worker.worker_memory_bytes_max = settings.memory_limit_bytes.value_or(0);
  worker.runtime = RuntimeOf(settings, platform);
  worker.prefer_tflite = platform.prefer_tflite;
  return worker;
}

sched::BatchingParameters ToSched(const config::BatchingParameters& from) {
  sched::BatchingParameters parameters;
  parameters.max_batch_size = from.max_batch_size;
  if (from.batch_timeout_micros) {
    parameters.batch_timeout = absl::Microseconds(*from.batch_timeout_micros);
  }
  parameters.max_enqueued_batches = from.max_enqueued_batches;
  parameters.num_batch_threads = from.num_batch_threads;
  parameters.allowed_batch_sizes = from.allowed_batch_sizes;
  parameters.pad_variable_length_inputs = from.pad_variable_length_inputs;
  parameters.enable_large_batch_splitting = from.enable_large_batch_splitting;
  parameters.max_execution_batch_size = from.max_execution_batch_size;
  return parameters;
}

// How large a worker may be that gets a second session. A limit that the operator set has to hold
// with both of them, and what runs beside.
uint64_t NarrowBytesMax(const Machine& machine, const models::ModelConfig& config,
                        const config::ModelSettings& settings) {
  constexpr uint64_t kOfAll = UINT64_MAX;
  const auto replicas = static_cast<uint64_t>(std::max(1, config.replicas));
  return std::min({machine.memory_bytes / kNarrowMemoryShare,
                   settings.memory_limit_bytes.value_or(kOfAll) / 3,
                   settings.model_memory_limit_bytes.value_or(kOfAll) / replicas / 3});
}

// `pools`: as the operator asked for with the original's option for TensorFlow Lite models.
uint32_t Executors(int pools, const models::ModelConfig& config, const Machine& machine) {
  if (config.worker.executors > 0) return static_cast<uint32_t>(config.worker.executors);
  return static_cast<uint32_t>(pools > 0 ? pools : ShareOfCpus(machine, config));
}

}  // namespace

int ShareOfCpus(const Machine& machine, const models::ModelConfig& config) {
  const int replicas = std::max(1, config.replicas);
  return std::max(1, (machine.cpus + replicas - 1) / replicas);
}

const config::PlatformSettings& PlatformOf(const config::Platforms& platforms,
                                           const std::string& platform) {
  const auto at = platforms.find(platform);
  TENSORD_CHECK(at != platforms.end());
  return at->second;
}

const config::ModelSettings& SettingsOf(const SettingsByModel& settings, const std::string& model) {
  static const config::ModelSettings kUnset;
  const auto at = settings.find(model);
  return at == settings.end() ? kUnset : at->second;
}

std::vector<models::ModelConfig> PlanModels(const std::vector<config::ModelEntry>& entries,
                                            const SettingsByModel& settings,
                                            const config::Platforms& platforms) {
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
    config.memory_bytes_max = own.model_memory_limit_bytes.value_or(0);
    config.worker = PlanWorker(own, PlatformOf(platforms, entry.platform));
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

SessionPlan PlanSession(const fleet::WorkerKey& key, const models::WorkerSettings& settings,
                        const config::PlatformSettings& platform, const Machine& machine) {
  tensorflow::ConfigProto config;
  TENSORD_CHECK(config.ParseFromString(platform.session_config));  // We wrote it.
  if (settings.intra_op_threads > 0) {
    config.set_intra_op_parallelism_threads(settings.intra_op_threads);
  }
  if (settings.inter_op_threads > 0) {
    config.set_inter_op_parallelism_threads(settings.inter_op_threads);
  }
  SessionPlan plan;
  // Who gives pools threads wants ops to run beside each other.
  plan.runs_in_caller =
      config.inter_op_parallelism_threads() <= 1 && config.session_inter_op_thread_pool().empty();
  // The runtime would take the machine's CPUs, not those that we may use.
  if (config.intra_op_parallelism_threads() == 0) {
    config.set_intra_op_parallelism_threads(machine.cores);
    if (machine.cores > 1 && plan.runs_in_caller) {
      tensorflow::ConfigProto narrow;
      narrow.set_intra_op_parallelism_threads(1);
      plan.narrow = narrow.SerializeAsString();
    }
  }
  if (config.inter_op_parallelism_threads() == 0) {
    config.set_inter_op_parallelism_threads(machine.cpus);
  }
  config.set_allow_soft_placement(true);
  config.mutable_gpu_options()->set_allow_growth(true);  // A GPU is shared by all workers.
  if (platform.bfloat16) {
    config.mutable_graph_options()
        ->mutable_rewrite_options()
        ->set_auto_mixed_precision_onednn_bfloat16(tensorflow::RewriterConfig::ON);
  }
  if (platform.session_metadata) {
    tensorflow::SessionMetadata* names = config.mutable_experimental()->mutable_session_metadata();
    names->set_name(key.model);
    names->set_version(key.version);
  }
  plan.config = config.SerializeAsString();
  return plan;
}

channel::LoadRecord PlanLoad(const fleet::WorkerKey& key, const models::VersionFiles& files,
                             const models::ModelConfig& config,
                             const config::ModelSettings& settings,
                             const config::PlatformSettings& platform,
                             const config::ServerOptions& options, const Machine& machine,
                             const sched::QueueOptions& queue, uint64_t worker_number) {
  SessionPlan session = PlanSession(key, config.worker, platform, machine);
  channel::LoadRecord load;
  load.model = key.model;
  load.version = key.version;
  load.directory = files.directory;
  load.tags = platform.saved_model_tags;
  load.session_config = std::move(session.config);
  const bool lite = key.kind == fleet::WorkerKind::kLiteRt;
  if (!lite) {
    load.op_libraries = absl::StrSplit(options.op_library, ',', absl::SkipEmpty());
    for (const std::string& library : settings.op_libraries) load.op_libraries.push_back(library);
  }
  load.executors = Executors(lite ? platform.tflite_interpreters : 0, config, machine);
  load.runs_in_caller = settings.runs_in_caller.value_or(session.runs_in_caller);
  if (load.executors > 1 && load.runs_in_caller && config.worker.warm_up && !lite) {
    load.narrow_session_config = std::move(session.narrow);
    load.narrow_bytes_max = NarrowBytesMax(machine, config, settings);
  }
  load.read_batching_parameters = platform.per_model_batching;
  load.synthetic_warm_up =
      config.worker.warm_up && !PlanWarmUp(files, config.worker, queue).has_value();
  load.warm_up_rows = WarmUpRows(config.worker, queue);
  load.sandbox = options.sandbox != "off" && settings.sandbox.value_or(true);
  load.sandbox_enforced = options.sandbox == "enforce" || options.sandbox == "on";
  load.accept_weak_files = options.accept_weak_sandbox == "files";
  if (machine.root && load.sandbox && options.worker_user_base > 0) {
    load.sandbox_user = static_cast<uint32_t>(options.worker_user_base) +
                        static_cast<uint32_t>(worker_number % kWorkerUsers);
  }
  return load;
}

absl::Duration LoadWaitMax(const fleet::WorkerKey& key, const config::ModelSettings& settings) {
  if (settings.load_timeout_ms) return absl::Milliseconds(*settings.load_timeout_ms);
  return key.kind == fleet::WorkerKind::kLiteRt ? limits::kLiteLoadWaitMax : limits::kLoadWaitMax;
}

std::string WhyStageOne(const engine::ModelInfo& info, std::optional<int> asked) {
  if (engine::UsesGpu(info)) return "the drivers of its GPU need what stage 2 takes";
  if (asked == 1) return "its settings ask for no more";
  if (asked == 2 || info.warm_up_runs > 0) return "";
  const std::string_view reason =
      info.stateful_reason.empty() ? "nothing" : "it keeps state, so nothing";
  return base::Cat(reason,
                   " has warmed it up, and a first run may need what stage 2 takes; "
                   "sandbox_stage: 2 in its settings goes on all the same");
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

void PlanBatching(const config::PlatformSettings& platform, const config::ModelSettings& settings,
                  sched::QueueOptions* options) {
  if (platform.batching) {
    options->batching = ToSched(*platform.batching);
  } else if (settings.batch_timeout_micros) {
    sched::BatchingParameters set;
    set.batch_timeout = absl::Microseconds(*settings.batch_timeout_micros);
    options->batching = std::move(set);
  }
  options->rows_promised = settings.batching_enabled.value_or(false);
  options->rows_may_grow = !settings.batch_rows_max.has_value();
  if (settings.batch_rows_max) options->rows_max = *settings.batch_rows_max;
  if (!settings.batching_enabled.value_or(true)) {
    options->rows_max = 1;
    options->rows_may_grow = false;
    options->batching.reset();
  }
}

sched::QueueOptions QueueToWarmFor(const config::PlatformSettings& platform,
                                   const config::ModelSettings& settings,
                                   const models::VersionFiles& files) {
  sched::QueueOptions queue;
  PlanBatching(platform, settings, &queue);
  if (!settings.batching_enabled.value_or(true)) return queue;
  // What is wrong with the file fails the load, once the worker has brought it.
  PlanVersionBatching(platform, files.batching_parameters, &queue).IgnoreError();
  return queue;
}

absl::Status PlanVersionBatching(const config::PlatformSettings& platform,
                                 const std::optional<std::string>& file,
                                 sched::QueueOptions* options) {
  if (!platform.per_model_batching) return absl::OkStatus();
  options->batching.reset();
  if (!file) {
    options->rows_max = 1;  // As the original: without a file, no batching.
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      config::BatchingParameters parameters,
      config::ParseBatchingParameters(*file, engine::kBatchingParametersFile, nullptr));
  // The threads of the original's pool are shared by all versions.
  parameters.num_batch_threads = platform.batching->num_batch_threads;
  options->batching = ToSched(parameters);
  return absl::OkStatus();
}

}  // namespace tensord::serve
