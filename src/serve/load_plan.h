// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "channel/record.h"
#include "config/platforms.h"
#include "config/server_options.h"
#include "config/text_files.h"
#include "engine/model_info.h"
#include "fleet/worker_key.h"
#include "models/config.h"
#include "sched/queue_options.h"
#include "serve/warm_up.h"

// From flags and files to what catalog, queue and worker are told. Pure.
namespace tensord::serve {

using SettingsByModel = std::map<std::string, config::ModelSettings>;

// Facts of this start that are no options.
struct Machine {
  int cpus = 1;               // That we may use.
  int cores = 1;              // Likewise; hardware threads of one core count once.
  uint64_t memory_bytes = 0;  // That we may use.
  bool root = false;          // Workers can get users of their own.
};

// The two runtime environments that differ today; their numbers are in every WorkerKey.
inline constexpr uint32_t kRuntimeDefault = 0;
inline constexpr uint32_t kRuntimeOneDnnOn = 1;
inline constexpr uint32_t kRuntimeOneDnnOff = 2;

// CPUs for each of a version's workers, rounded up.
int ShareOfCpus(const Machine& machine, const models::ModelConfig& config);

// Of the memory for requests, half is for calls that wait or run, beyond a quarter that the models
// have in reserve, each an equal part; the rest is for bodies that still arrive, and for answers.
constexpr uint64_t SharedBytes(uint64_t request_bytes_max) { return request_bytes_max / 2; }
constexpr uint64_t ReservedBytes(uint64_t request_bytes_max, uint64_t models) {
  return request_bytes_max / 4 / models;
}

// REQUIRES: a platform that a checked model names.
const config::PlatformSettings& PlatformOf(const config::Platforms& platforms,
                                           const std::string& platform);

// The settings of a model; all unset for one that the file does not name.
const config::ModelSettings& SettingsOf(const SettingsByModel& settings, const std::string& model);

std::vector<models::ModelConfig> PlanModels(const std::vector<config::ModelEntry>& entries,
                                            const SettingsByModel& settings,
                                            const config::Platforms& platforms);

models::Options PlanCatalog(const config::ServerOptions& options, uint64_t memory_limit_bytes);

// `worker_number` counts the workers of this front; it picks the worker's user.
channel::LoadRecord PlanLoad(const fleet::WorkerKey& key, const models::VersionFiles& files,
                             const models::ModelConfig& config,
                             const config::ModelSettings& settings,
                             const config::PlatformSettings& platform,
                             const config::ServerOptions& options, const Machine& machine,
                             const sched::QueueOptions& queue, uint64_t worker_number);

// How long a worker may take until it is loaded and warm.
absl::Duration LoadWaitMax(const fleet::WorkerKey& key, const config::ModelSettings& settings);

// Why a worker that is loaded and warm goes no further than stage 1 of its sandbox; "" when it goes
// on to stage 2. `asked`: the model's setting.
std::string WhyStageOne(const engine::ModelInfo& info, std::optional<int> asked);

// Batch sizes to be run before a version is visible: those that the model's settings name, else
// those that the queue may form (the powers of two stand for all between them).
std::vector<int64_t> WarmUpRows(const models::WorkerSettings& settings,
                                const sched::QueueOptions& queue);

// The recorded requests to be replayed; nothing when there are none, or none are wanted.
std::optional<WarmUpPlan> PlanWarmUp(const models::VersionFiles& files,
                                     const models::WorkerSettings& settings,
                                     const sched::QueueOptions& queue);

// Batching as the operator set it: by the original's parameters, else by our settings, else by us.
void PlanBatching(const config::PlatformSettings& platform, const config::ModelSettings& settings,
                  sched::QueueOptions* options);

// The batching that a version is warmed up for: with its own parameters where versions bring them.
sched::QueueOptions QueueToWarmFor(const config::PlatformSettings& platform,
                                   const config::ModelSettings& settings,
                                   const models::VersionFiles& files);

// Then, where versions bring their own parameters: those of `file`, or no batching without one.
// INVALID_ARGUMENT fails the load.
absl::Status PlanVersionBatching(const config::PlatformSettings& platform,
                                 const std::optional<std::string>& file,
                                 sched::QueueOptions* options);

// What a session is opened with.
struct SessionPlan {
  std::string config;  // A serialized tensorflow.ConfigProto.
  // What makes a second session of it for runs that have company: one thread for each. Empty where
  // the width is the operator's choice, where a run has one thread anyway, or where runs do not
  // stay in their executors.
  std::string narrow;
  bool runs_in_caller = true;  // False: the operator asked for ops that run in parallel.
};
SessionPlan PlanSession(const fleet::WorkerKey& key, const models::WorkerSettings& settings,
                        const config::PlatformSettings& platform, const Machine& machine);

}  // namespace tensord::serve
