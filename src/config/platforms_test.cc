// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/platforms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/text.h"
#include "config/testing/text_file.h"
#include "tensord/session_config.pb.h"

namespace tensord::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::string Words(const absl::Status& status) { return std::string(base::Message(status)); }

absl::StatusOr<BatchingParameters> Batching(std::string_view text, Warnings* warnings = nullptr) {
  return ParseBatchingParameters(text, "b.pbtxt", warnings);
}

std::string BatchingError(std::string_view text) { return Words(Batching(text).status()); }

// What the flags say of the one platform there is.
PlatformSettings OfFlags(const ServerOptions& options, Warnings* warnings = nullptr) {
  const auto platforms = LoadPlatforms(options, warnings);
  EXPECT_TRUE(platforms.ok()) << platforms.status();
  EXPECT_THAT(*platforms, SizeIs(1));
  return platforms->at("tensorflow");
}

tensorflow::ConfigProto SessionOf(const PlatformSettings& settings) {
  tensorflow::ConfigProto config;
  EXPECT_TRUE(config.ParseFromString(settings.session_config));
  return config;
}

// ---- BatchingParameters
// --------------------------------------------------------------------------

TEST(ParseBatchingParameters, ReadsEveryFieldAndTellsUnsetFromZero) {
  EXPECT_EQ(Batching("").value(), BatchingParameters());
  EXPECT_EQ(Batching("max_batch_size { value: 64 } batch_timeout_micros { value: 0 } "
                     "max_enqueued_batches { value: 0 } num_batch_threads { value: 3 } "
                     "thread_pool_name { value: 'p' } pad_variable_length_inputs: true "
                     "allowed_batch_sizes: [ 2, 8, 64 ]")
                .value(),
            (BatchingParameters{.max_batch_size = 64,
                                .batch_timeout_micros = 0,
                                .max_enqueued_batches = 1,
                                .num_batch_threads = 3,
                                .allowed_batch_sizes = {2, 8, 64},
                                .pad_variable_length_inputs = true}));
  EXPECT_EQ(Batching("max_batch_size { value: 64 } enable_large_batch_splitting { value: true } "
                     "max_execution_batch_size { value: 16 } allowed_batch_sizes: 4 "
                     "allowed_batch_sizes: 16")
                .value(),
            (BatchingParameters{.max_batch_size = 64,
                                .allowed_batch_sizes = {4, 16},
                                .enable_large_batch_splitting = true,
                                .max_execution_batch_size = 16}));
}

TEST(ParseBatchingParameters, RefusesWhatWouldFailAModelAndNamesTheFile) {
  EXPECT_THAT(BatchingError("max_batch_size { value: 0 }"),
              HasSubstr("b.pbtxt: max_batch_size must be from 1 to"));
  EXPECT_THAT(BatchingError("batch_timeout_micros { value: -1 }"),
              HasSubstr("batch_timeout_micros must be from 0"));
  EXPECT_THAT(BatchingError("num_batch_threads { value: 0 }"),
              HasSubstr("num_batch_threads must be from 1"));
  EXPECT_THAT(BatchingError("max_enqueued_batches { value: 0 } "
                            "enable_large_batch_splitting { value: true }"),
              HasSubstr("max_enqueued_batches must be from 1"));
  EXPECT_THAT(BatchingError("allowed_batch_sizes: 0"), HasSubstr("allowed_batch_sizes must be"));
  EXPECT_EQ(BatchingError("max_batch_size { value: 8 } allowed_batch_sizes: [2, 4]"),
            "b.pbtxt: Last entry in allowed_batch_sizes must match max_batch_size; last entry was "
            "4; expected 8");
  EXPECT_THAT(BatchingError("max_batch_size { value: 8 } enable_large_batch_splitting { value: "
                            "true } max_execution_batch_size { value: 9 }"),
              HasSubstr("max_execution_batch_size must be at most max_batch_size (8), not 9"));
  EXPECT_THAT(BatchingError("allowed_batch_sizes: [8, 2, 4]"),
              HasSubstr("must ascend; 8 comes before 4"));
}

TEST(ParseBatchingParameters, SaysLineAndColumnOfATextError) {
  EXPECT_THAT(BatchingError("\nmax_batch_size: 64"),
              HasSubstr("Error parsing text-format tensorflow.serving.BatchingParameters: "
                        "b.pbtxt:2:17: "));
}

TEST(ParseBatchingParameters, TakesWhatTheOriginalTakes) {
  Warnings warnings;
  // With splitting the last size may be that of calls or that of runs.
  EXPECT_TRUE(Batching("max_batch_size { value: 64 } enable_large_batch_splitting { value: true } "
                       "max_execution_batch_size { value: 16 } allowed_batch_sizes: [4, 16, 64]",
                       &warnings)
                  .ok());
  EXPECT_THAT(warnings, IsEmpty());
  // It does not check the order.
  EXPECT_THAT(Batching("allowed_batch_sizes: [4, 2, 2, 8]", &warnings)->allowed_batch_sizes,
              ElementsAre(2, 4, 8));
  EXPECT_THAT(warnings, ElementsAre("b.pbtxt: allowed_batch_sizes do not ascend; they are taken in "
                                    "ascending order"));
  warnings.clear();
  EXPECT_EQ(Batching("max_execution_batch_size { value: 4 }", &warnings).value(),
            BatchingParameters());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("no effect without enable_large_batch_splitting")));
}

TEST(ParseBatchingParameters, HostileTextIsAnErrorOfBoundedLength) {
  const std::string words = BatchingError(std::string(60'000, 'x'));
  EXPECT_THAT(words, HasSubstr("Error parsing text-format"));
  EXPECT_LT(words.size(), 2500u);
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "max_batch_size {";
  EXPECT_LT(BatchingError(deep).size(), 2500u);
  EXPECT_FALSE(Batching(std::string_view("\0\xff", 2)).ok());
}

// ---- The flags
// -----------------------------------------------------------------------------------

TEST(LoadPlatforms, MakesOnePlatformOfTheFlags) {
  EXPECT_EQ(OfFlags({}), PlatformSettings());
  const TextFile batching("max_batch_size { value: 8 }");
  const PlatformSettings settings = OfFlags({.saved_model_tags = "serve,gpu",
                                             .enable_model_warmup = false,
                                             .num_request_iterations_for_warmup = 3,
                                             .enable_batching = true,
                                             .batching_parameters_file = batching.path(),
                                             .enable_per_model_batching_parameters = true,
                                             .mixed_precision = "bfloat16"});
  EXPECT_EQ(settings, (PlatformSettings{.saved_model_tags = {"serve", "gpu"},
                                        .batching = BatchingParameters{.max_batch_size = 8},
                                        .per_model_batching = true,
                                        .warm_up = false,
                                        .warm_up_repeats = 3,
                                        .bfloat16 = true}));
  EXPECT_EQ(OfFlags({.enable_batching = true}).batching, BatchingParameters());
  const PlatformSettings lite = OfFlags({.prefer_tflite_model = true, .num_tflite_pools = 3});
  EXPECT_TRUE(lite.prefer_tflite);
  EXPECT_EQ(lite.tflite_interpreters, 3);
  EXPECT_THAT(OfFlags({.saved_model_tags = ""}).saved_model_tags, ElementsAre("serve"));
}

TEST(LoadPlatforms, AnEmptyTagAmongTheFlagsTagsIsAnError) {
  for (const char* tags : {",", "serve,", ",serve", "serve,,gpu"}) {
    const absl::Status status = LoadPlatforms({.saved_model_tags = tags}, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << tags;
    EXPECT_THAT(std::string(base::Message(status)), HasSubstr("has an empty tag")) << tags;
  }
}

TEST(LoadPlatforms, FlagsWinOverTheSessionConfigFileWhereTheyAreGiven) {
  const TextFile file(
      "intra_op_parallelism_threads: 2 inter_op_parallelism_threads: 3 device_count { key: 'GPU' "
      "value: 0 } gpu_options { per_process_gpu_memory_fraction: 0.5 } graph_options { "
      "rewrite_options { remapping: OFF custom_optimizers { name: 'x' parameter_map { key: 'a' "
      "value { i: 1 } } } } optimizer_options { global_jit_level: ON_1 } } experimental { "
      "mlir_bridge_rollout: MLIR_BRIDGE_ROLLOUT_DISABLED }");
  ServerOptions options{.tensorflow_session_config_file = file.path()};
  tensorflow::ConfigProto config = SessionOf(OfFlags(options));
  EXPECT_EQ(config.intra_op_parallelism_threads(), 2);
  EXPECT_EQ(config.inter_op_parallelism_threads(), 3);
  EXPECT_EQ(config.device_count().at("GPU"), 0);
  EXPECT_EQ(config.gpu_options().per_process_gpu_memory_fraction(), 0.5);
  EXPECT_EQ(config.graph_options().rewrite_options().custom_optimizers(0).name(), "x");
  options.tensorflow_session_parallelism = 7;
  options.per_process_gpu_memory_fraction = 0.25;
  config = SessionOf(OfFlags(options));
  EXPECT_EQ(config.intra_op_parallelism_threads(), 7);
  EXPECT_EQ(config.inter_op_parallelism_threads(), 7);
  EXPECT_EQ(config.gpu_options().per_process_gpu_memory_fraction(), 0.25);
  options.tensorflow_intra_op_parallelism = 5;  // Then the flag for both counts no longer.
  config = SessionOf(OfFlags(options));
  EXPECT_EQ(config.intra_op_parallelism_threads(), 5);
  EXPECT_EQ(config.inter_op_parallelism_threads(), 3);
}

TEST(LoadPlatforms, RefusesFlagsInTheOriginalsWords) {
  EXPECT_EQ(Words(LoadPlatforms({.batching_parameters_file = "/b"}, nullptr).status()),
            "server_options.batching_parameters_file is set without setting "
            "server_options.enable_batching to true.");
  EXPECT_EQ(
      Words(LoadPlatforms({.tensorflow_session_parallelism = 1,
                           .tensorflow_intra_op_parallelism = 1,
                           .tensorflow_inter_op_parallelism = 1},
                          nullptr)
                .status()),
      "Either configure server_options.tensorflow_session_parallelism or "
      "(server_options.tensorflow_intra_op_parallelism, "
      "server_options.tensorflow_inter_op_parallelism) separately. You cannot configure all.");
  const TextFile bad("intra_op_parallelism_threads: x");
  EXPECT_THAT(
      Words(LoadPlatforms({.tensorflow_session_config_file = bad.path()}, nullptr).status()),
      HasSubstr(
          base::Cat("Error parsing text-format tensorflow.ConfigProto: ", bad.path(), ":1:31: ")));
  const TextFile large(
      base::Cat("device_filters: '", std::string(limits::kSessionConfigBytesMax, 'x'), "'"));
  EXPECT_THAT(
      Words(LoadPlatforms({.tensorflow_session_config_file = large.path()}, nullptr).status()),
      HasSubstr("bytes, more than the"));
}

TEST(LoadPlatforms, WarnsAboutFlagsThatSayNothing) {
  Warnings warnings;
  OfFlags({.enable_per_model_batching_parameters = true, .mixed_precision = "float16"}, &warnings);
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("no effect without --enable_batching"),
                          "--mixed_precision: float16 auto mixed precision is not supported. Valid "
                          "options are: bfloat16"));
}

// ---- The file
// ------------------------------------------------------------------------------------

std::string Bundle(std::string_view key, std::string_view legacy_config) {
  return base::Cat(
      "platform_configs { key: '", key, "' value { source_adapter_config { ",
      "[type.googleapis.com/tensorflow.serving.SavedModelBundleSourceAdapterConfig] { ",
      "legacy_config { ", legacy_config, " } } } } }");
}

absl::StatusOr<Platforms> OfFile(const std::string& text, Warnings* warnings = nullptr,
                                 ServerOptions options = {}) {
  const TextFile file(text);
  options.platform_config_file = file.path();
  return LoadPlatforms(options, warnings);
}

TEST(LoadPlatforms, ReadsThePlatformFile) {
  Warnings warnings;
  const auto platforms =
      OfFile(base::Cat(Bundle("tensorflow",
                              "session_config { intra_op_parallelism_threads: 2 } "
                              "batching_parameters { max_batch_size { value: 4 } } "
                              "enable_per_model_batching_params: true "
                              "saved_model_tags: 'serve' saved_model_tags: 'tpu' "
                              "enable_model_warmup: true "
                              "model_warmup_options { num_request_iterations { value: 2 } } "
                              "mixed_precision: 'bfloat16' enable_session_metadata: true"),
                       Bundle("mine", "")),
             &warnings);
  ASSERT_TRUE(platforms.ok()) << platforms.status();
  EXPECT_THAT(warnings, IsEmpty());
  PlatformSettings mine;
  mine.warm_up = false;  // As the original: off where the file does not turn it on.
  EXPECT_EQ(platforms->at("mine"), mine);
  const PlatformSettings& tensorflow = platforms->at("tensorflow");
  EXPECT_EQ(SessionOf(tensorflow).intra_op_parallelism_threads(), 2);
  EXPECT_EQ(tensorflow.batching->max_batch_size, 4);
  EXPECT_THAT(tensorflow.saved_model_tags, ElementsAre("serve", "tpu"));
  EXPECT_EQ(tensorflow.warm_up_repeats, 2);
  EXPECT_TRUE(tensorflow.per_model_batching && tensorflow.warm_up && tensorflow.bfloat16 &&
              tensorflow.session_metadata);
}

TEST(LoadPlatforms, TheFileReplacesTheFlags) {
  Warnings warnings;
  const auto platforms = OfFile(Bundle("tensorflow", "session_target: 'grpc://x'"), &warnings,
                                {.enable_batching = true, .tensorflow_session_parallelism = 3});
  ASSERT_TRUE(platforms.ok()) << platforms.status();
  EXPECT_EQ(platforms->at("tensorflow").batching, std::nullopt);
  EXPECT_EQ(platforms->at("tensorflow").session_config, "");
  EXPECT_THAT(warnings, UnorderedElementsAre(
                            "--enable_batching has no effect: --platform_config_file replaces it",
                            HasSubstr("--tensorflow_session_parallelism has no effect"),
                            HasSubstr("platform \"tensorflow\": session_target has no effect")));
}

TEST(LoadPlatforms, SaysWhichFieldsOfTheFileHaveNoEffect) {
  Warnings warnings;
  const auto platforms = OfFile(Bundle("tensorflow",
                                       "session_run_load_threadpool_index { value: 1 } "
                                       "experimental_transient_ram_bytes_during_load: 5 "
                                       "model_warmup_options { enable_all_batch_sizes_warmup: true "
                                       "num_model_warmup_threads { value: 2 } }"),
                                &warnings);
  ASSERT_TRUE(platforms.ok()) << platforms.status();
  EXPECT_THAT(warnings,
              UnorderedElementsAre(
                  HasSubstr("session_run_load_threadpool_index has no effect"),
                  HasSubstr("experimental_transient_ram_bytes_during_load has no effect"),
                  HasSubstr("model_warmup_options.enable_all_batch_sizes_warmup has no effect"),
                  HasSubstr("model_warmup_options.num_model_warmup_threads has no effect")));
}

TEST(LoadPlatforms, RefusesAPlatformFileThatItCannotFollow) {
  EXPECT_THAT(Words(OfFile("").status()), HasSubstr("there are no platform_configs"));
  EXPECT_THAT(Words(OfFile("platform_configs { key: 'a' value {} }").status()),
              HasSubstr("platform \"a\": source_adapter_config must be a [type.googleapis.com/"
                        "tensorflow.serving.SavedModelBundleSourceAdapterConfig], not unset"));
  EXPECT_THAT(Words(OfFile("platform_configs { key: 'a' value { source_adapter_config { type_url: "
                           "'type.googleapis.com/x.Y' } } }")
                        .status()),
              HasSubstr("not a [type.googleapis.com/x.Y]"));
  EXPECT_THAT(Words(OfFile(Bundle("a", "experimental_fixed_input_tensors { name: 'x' }")).status()),
              HasSubstr("experimental_fixed_input_tensors"));
  EXPECT_THAT(
      Words(OfFile(Bundle("a", "batching_parameters { max_batch_size { value: 0 } }")).status()),
      HasSubstr("platform \"a\": batching_parameters: max_batch_size must be"));
  EXPECT_THAT(
      Words(OfFile("platform_configs {\n key: 'a'\n valu {} }").status()),
      testing::AllOf(HasSubstr("Error parsing text-format tensorflow.serving.PlatformConfigMap"),
                     HasSubstr(":3:7: ")));
}

}  // namespace
}  // namespace tensord::config
