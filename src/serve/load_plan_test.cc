// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/load_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/sched_limits.h"
#include "base/text.h"
#include "tensord/session_config.pb.h"

namespace tensord::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const fleet::WorkerKey kKey{.model = "m", .version = 7};
constexpr Machine kMachine{.cpus = 3, .cores = 3};

models::WorkerSettings Threads(int intra_op, int inter_op) {
  models::WorkerSettings settings;
  settings.intra_op_threads = intra_op;
  settings.inter_op_threads = inter_op;
  return settings;
}

tensorflow::ConfigProto Parse(const SessionPlan& plan) {
  tensorflow::ConfigProto config;
  EXPECT_TRUE(config.ParseFromString(plan.config));
  return config;
}

config::PlatformSettings WithSession(const tensorflow::ConfigProto& config) {
  return {.session_config = config.SerializeAsString()};
}

TEST(PlanSession, TakesTheCpusThatWeMayUseWhereNobodySaysOtherwise) {
  const SessionPlan plan = PlanSession(kKey, {}, {}, kMachine);
  EXPECT_EQ(Parse(plan).intra_op_parallelism_threads(), 3);
  EXPECT_EQ(Parse(plan).inter_op_parallelism_threads(), 3);
  EXPECT_FALSE(Parse(plan).experimental().has_session_metadata());
  EXPECT_TRUE(plan.runs_in_caller);
}

TEST(PlanSession, KeepsTheOperatorsConfigAndLetsTheModelsSettingsWin) {
  tensorflow::ConfigProto operators;
  operators.set_intra_op_parallelism_threads(2);
  operators.set_inter_op_parallelism_threads(2);
  operators.mutable_gpu_options()->set_per_process_gpu_memory_fraction(0.5);
  (*operators.mutable_device_count())["GPU"] = 0;
  const SessionPlan plan = PlanSession(kKey, Threads(9, 0), WithSession(operators), kMachine);
  EXPECT_EQ(Parse(plan).intra_op_parallelism_threads(), 9);
  EXPECT_EQ(Parse(plan).inter_op_parallelism_threads(), 2);
  EXPECT_EQ(Parse(plan).gpu_options().per_process_gpu_memory_fraction(), 0.5);
  EXPECT_EQ(Parse(plan).device_count().at("GPU"), 0);
}

TEST(PlanSession, RunsUseThePoolThatAnOperatorAskedFor) {
  tensorflow::ConfigProto operators;
  operators.set_inter_op_parallelism_threads(1);
  EXPECT_TRUE(PlanSession(kKey, {}, WithSession(operators), kMachine).runs_in_caller);
  operators.set_inter_op_parallelism_threads(2);
  EXPECT_FALSE(PlanSession(kKey, {}, WithSession(operators), kMachine).runs_in_caller);
  operators.clear_inter_op_parallelism_threads();
  operators.add_session_inter_op_thread_pool()->set_num_threads(2);
  EXPECT_FALSE(PlanSession(kKey, {}, WithSession(operators), kMachine).runs_in_caller);
  EXPECT_FALSE(PlanSession(kKey, Threads(0, 4), {}, kMachine).runs_in_caller);
}

TEST(PlanSession, Bfloat16TurnsOnItsPassAndOneDnn) {
  const config::PlatformSettings platform{.bfloat16 = true, .session_metadata = true};
  const tensorflow::ConfigProto config = Parse(PlanSession(kKey, {}, platform, kMachine));
  EXPECT_EQ(config.graph_options().rewrite_options().auto_mixed_precision_onednn_bfloat16(),
            tensorflow::RewriterConfig::ON);
  EXPECT_EQ(config.experimental().session_metadata().name(), "m");
  EXPECT_EQ(config.experimental().session_metadata().version(), 7);
  const config::Platforms platforms = {{"tensorflow", platform}};
  SettingsByModel settings;
  const auto runtime = [&] {
    return PlanModels({{.name = "m"}}, settings, platforms).front().worker.runtime;
  };
  EXPECT_EQ(runtime(), kRuntimeOneDnnOn);
  settings["m"].onednn = config::ModelSettings::OneDnn::kOff;
  EXPECT_EQ(runtime(), kRuntimeOneDnnOff);  // The model's own settings win.
}

TEST(PlanLoad, CarriesThePlatformsTags) {
  const channel::LoadRecord load = PlanLoad(
      kKey, {.directory = "/m/7"}, {}, {},
      {.saved_model_tags = {"serve", "gpu"}, .per_model_batching = true}, {}, kMachine, {}, 0);
  EXPECT_THAT(load.tags, ElementsAre("serve", "gpu"));
  EXPECT_TRUE(load.read_batching_parameters);
}

TEST(LoadWaitMax, IsTheModelsOwnOrThatOfItsEngine) {
  const fleet::WorkerKey lite{.model = "m", .version = 7, .kind = fleet::WorkerKind::kLiteRt};
  EXPECT_EQ(LoadWaitMax(kKey, {}), limits::kLoadWaitMax);
  EXPECT_EQ(LoadWaitMax(lite, {}), limits::kLiteLoadWaitMax);
  EXPECT_EQ(LoadWaitMax(kKey, {.load_timeout_ms = 5}), absl::Milliseconds(5));
  EXPECT_EQ(LoadWaitMax(lite, {.load_timeout_ms = 5}), absl::Milliseconds(5));
}

TEST(PlanLoad, ATensorFlowLiteModelGetsTheInterpretersThatWereAskedForAndNothingOfTensorFlows) {
  config::ServerOptions options;
  options.op_library = "/ops.so";
  const auto load = [&options](fleet::WorkerKind kind, int interpreters) {
    return PlanLoad({.model = "m", .version = 7, .kind = kind}, {}, {}, {},
                    {.tflite_interpreters = interpreters}, options, kMachine, {}, 0);
  };
  EXPECT_EQ(load(fleet::WorkerKind::kLiteRt, 0).executors, 3u);
  EXPECT_EQ(load(fleet::WorkerKind::kLiteRt, 8).executors, 8u);
  EXPECT_EQ(load(fleet::WorkerKind::kTensorFlow, 8).executors, 3u);
  EXPECT_TRUE(load(fleet::WorkerKind::kLiteRt, 0).op_libraries.empty());
  EXPECT_TRUE(load(fleet::WorkerKind::kLiteRt, 0).narrow_session_config.empty());
  EXPECT_THAT(load(fleet::WorkerKind::kTensorFlow, 0).op_libraries, ElementsAre("/ops.so"));
}

TEST(PlanLoad, ReplicasShareTheCpus) {
  const auto executors = [](int cpus, int replicas, int set = 0) {
    models::ModelConfig config;
    config.replicas = replicas;
    config.worker.executors = set;
    return PlanLoad(kKey, {}, config, {}, {}, {}, {.cpus = cpus}, {}, 0).executors;
  };
  EXPECT_EQ(executors(8, 1), 8u);
  EXPECT_EQ(executors(8, 2), 4u);
  EXPECT_EQ(executors(8, 3), 3u);
  EXPECT_EQ(executors(2, 8), 1u);
  EXPECT_EQ(executors(8, 2, 5), 5u);
}

TEST(PlanLoad, ASecondSessionIsForRunsThatMayHaveCompanyAndThreads) {
  const auto narrow = [](const Machine& machine, const models::WorkerSettings& worker) {
    models::ModelConfig config;
    config.worker = worker;
    return PlanLoad(kKey, {}, config, {}, {}, {}, machine, {}, 0).narrow_session_config;
  };
  const auto with = [](auto member, auto value) {
    models::WorkerSettings worker;
    worker.*member = value;
    return worker;
  };
  using Worker = models::WorkerSettings;
  const Machine two{.cpus = 2, .cores = 2};
  tensorflow::ConfigProto config;
  ASSERT_TRUE(config.ParseFromString(narrow(two, {})));
  EXPECT_EQ(config.intra_op_parallelism_threads(), 1);
  EXPECT_EQ(narrow({.cpus = 1}, {}), "");
  EXPECT_EQ(narrow({.cpus = 2, .cores = 1}, {}), "") << "two threads of one core";
  EXPECT_EQ(narrow(two, with(&Worker::executors, 1)), "");
  EXPECT_EQ(narrow(two, with(&Worker::intra_op_threads, 2)), "") << "he chose the width";
  EXPECT_EQ(narrow(two, with(&Worker::inter_op_threads, 2)), "") << "ops run beside each other";
  EXPECT_EQ(narrow(two, with(&Worker::warm_up, false)), "");
}

TEST(PlanLoad, ASecondSessionKeepsToTheLimitsOfMemory) {
  const auto most = [](const config::ModelSettings& settings) {
    models::ModelConfig config;
    config.replicas = 2;
    const Machine machine{.cpus = 4, .cores = 4, .memory_bytes = 1600};
    return PlanLoad(kKey, {}, config, settings, {}, {}, machine, {}, 0).narrow_bytes_max;
  };
  EXPECT_EQ(most({}), 100u);
  EXPECT_EQ(most({.memory_limit_bytes = 90}), 30u);
  EXPECT_EQ(most({.model_memory_limit_bytes = 90}), 15u);
}

TEST(PlanLoad, EnforcesTheSandboxUnlessTheOperatorSaysOtherwise) {
  const auto plan = [](const config::ServerOptions& options) {
    return PlanLoad({.model = "m", .version = 1}, {}, {}, {}, {}, options, {}, {}, 0);
  };
  EXPECT_TRUE(plan({}).sandbox && plan({}).sandbox_enforced);
  EXPECT_FALSE(plan({}).accept_weak_files);
  EXPECT_TRUE(plan({.sandbox = "on"}).sandbox_enforced);
  EXPECT_TRUE(plan({.accept_weak_sandbox = "files"}).accept_weak_files);
  for (const char* spelling : {"best-effort", "best_effort"}) {
    EXPECT_TRUE(plan({.sandbox = spelling}).sandbox);
    EXPECT_FALSE(plan({.sandbox = spelling}).sandbox_enforced);
  }
  EXPECT_FALSE(plan({.sandbox = "off"}).sandbox);
}

TEST(WhyStageOne, OnlyWarmModelsGoOnUnlessTheirSettingsSaySo) {
  engine::ModelInfo info;
  info.devices = {"/job:localhost/replica:0/task:0/device:CPU:0"};
  EXPECT_THAT(WhyStageOne(info, std::nullopt), ::testing::HasSubstr("nothing has warmed it up"));
  EXPECT_EQ(WhyStageOne(info, 2), "");
  info.stateful_reason = "AssignAddVariableOp in signature 'incr'";
  EXPECT_THAT(WhyStageOne(info, std::nullopt), ::testing::HasSubstr("it keeps state"));
  info.warm_up_runs = 1;
  EXPECT_EQ(WhyStageOne(info, std::nullopt), "");
  EXPECT_THAT(WhyStageOne(info, 1), ::testing::HasSubstr("its settings"));
  info.devices.emplace_back("/job:localhost/replica:0/task:0/device:GPU:0");
  EXPECT_THAT(WhyStageOne(info, 2), ::testing::HasSubstr("GPU"));
}

TEST(PlanBatching, TheOriginalsParametersComeBeforeOurSettings) {
  sched::QueueOptions options;
  PlanBatching({.batching = config::BatchingParameters{.max_batch_size = 8,
                                                       .batch_timeout_micros = 5,
                                                       .allowed_batch_sizes = {4, 8},
                                                       .enable_large_batch_splitting = true,
                                                       .max_execution_batch_size = 4}},
               {.batch_timeout_micros = 9}, &options);
  EXPECT_EQ(options.batching->max_batch_size, 8);
  EXPECT_EQ(options.batching->batch_timeout, absl::Microseconds(5));
  EXPECT_THAT(options.batching->allowed_batch_sizes, ElementsAre(4, 8));
  EXPECT_EQ(options.batching->ExecutionRowsMax(), 4);
  sched::QueueOptions off;
  PlanBatching({.batching = config::BatchingParameters{.max_batch_size = 8}},
               {.batching_enabled = false}, &off);
  EXPECT_FALSE(off.batching.has_value());
  EXPECT_EQ(off.rows_max, 1);
  EXPECT_FALSE(off.rows_may_grow);
}

TEST(PlanBatching, OnlyRowsThatNobodySetMayGrowAndNoneAreWarmedUpForIt) {
  sched::QueueOptions free;
  PlanBatching({}, {}, &free);
  EXPECT_TRUE(free.rows_may_grow);
  EXPECT_EQ(WarmUpRows({}, free).back(), limits::kBatchRowsMax);
  sched::QueueOptions set;
  PlanBatching({}, {.batch_rows_max = 16}, &set);
  EXPECT_FALSE(set.rows_may_grow);
  EXPECT_EQ(set.rows_max, 16);
}

TEST(QueueToWarmFor, IsTheVersionsOwnWhereVersionsBringTheirParameters) {
  config::PlatformSettings platform{
      .batching = config::BatchingParameters{.max_batch_size = 8, .allowed_batch_sizes = {2, 8}},
      .per_model_batching = true};
  config::ModelSettings settings;
  models::VersionFiles files;
  const auto rows = [&] {
    const sched::QueueOptions planned = QueueToWarmFor(platform, settings, files);
    files.warm_up_bytes = 1;
    models::WorkerSettings worker;
    worker.recorded_warm_up = true;
    EXPECT_EQ(PlanWarmUp(files, worker, planned)->rows, WarmUpRows({}, planned));
    return WarmUpRows({}, planned);
  };
  EXPECT_THAT(rows(), ElementsAre(1));  // Without a file, no batching.
  files.batching_parameters = "max_batch_size { value: 3 } allowed_batch_sizes: 3";
  EXPECT_THAT(rows(), ElementsAre(3));
  files.batching_parameters = "max_batch_size: 3";  // Fails the load later.
  EXPECT_THAT(rows(), Not(IsEmpty()));
  files.batching_parameters = "max_batch_size { value: 3 } allowed_batch_sizes: 3";
  settings.batching_enabled = false;
  EXPECT_THAT(rows(), ElementsAre(1));
  settings.batching_enabled.reset();
  platform.per_model_batching = false;
  EXPECT_THAT(rows(), ElementsAre(2, 8));
}

TEST(PlanVersionBatching, TakesTheVersionsFileOrNoBatching) {
  const config::PlatformSettings platform{
      .batching = config::BatchingParameters{.max_batch_size = 8, .num_batch_threads = 2},
      .per_model_batching = true};
  sched::QueueOptions options;
  PlanBatching(platform, {}, &options);
  ASSERT_TRUE(PlanVersionBatching(
                  platform, "max_batch_size { value: 4 } num_batch_threads { value: 9 }", &options)
                  .ok());
  EXPECT_EQ(options.batching->max_batch_size, 4);
  EXPECT_EQ(options.batching->num_batch_threads, 2);  // Of the pool, which all versions share.
  EXPECT_THAT(
      std::string(base::Message(PlanVersionBatching(platform, "max_batch_size: 4", &options))),
      HasSubstr("Error parsing text-format tensorflow.serving.BatchingParameters: "
                "batching_params.pbtxt:1:"));
  ASSERT_TRUE(PlanVersionBatching(platform, std::nullopt, &options).ok());
  EXPECT_FALSE(options.batching.has_value());
  EXPECT_EQ(options.rows_max, 1);
}

}  // namespace
}  // namespace tensord::serve
