// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "base/text.h"
#include "config/settings_page.h"

namespace tensord::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Becomes any member in aggregate initialisation, so that members can be counted.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT: implicit on purpose.
};

template <typename T, typename... Members>
constexpr size_t MemberCount() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return MemberCount<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

TEST(OptionTable, HasOneRowForEachMember) {
  EXPECT_EQ(OptionTable().size(), MemberCount<ServerOptions>());
  std::set<std::string_view> names;
  for (const Option& option : OptionTable()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " is there twice";
    const auto same = [&](const Option& other) { return other.member == option.member; };
    EXPECT_EQ(std::count_if(OptionTable().begin(), OptionTable().end(), same), 1) << option.name;
  }
}

// As tensorflow_model_server declares them: a name, a type or a default that changes here changes
// what somebody's command line means.
struct OriginalFlag {
  std::string_view name;
  std::string_view type;
  std::string_view value;
};
constexpr OriginalFlag kOriginalFlags[] = {
    {"port", "int32", "8500"},
    {"grpc_socket_path", "string", ""},
    {"grpc_max_threads", "int32", "0"},  // Computed from the CPUs there.
    {"grpc_channel_arguments", "string", ""},
    {"rest_api_port", "int32", "0"},
    {"rest_api_num_threads", "int32", "0"},  // Computed from the CPUs there.
    {"rest_api_timeout_in_ms", "int32", "30000"},
    {"rest_api_enable_cors_support", "bool", "false"},
    {"use_alts_credentials", "bool", "false"},
    {"ssl_config_file", "string", ""},
    {"enable_grpc_healthcheck_service", "bool", "false"},
    {"enable_profiler", "bool", "true"},
    {"enable_serialization_as_tensor_content", "bool", "false"},
    {"model_name", "string", "default"},
    {"model_base_path", "string", ""},
    {"model_config_file", "string", ""},
    {"model_config_file_poll_wait_seconds", "int32", "0"},
    {"allow_version_labels_for_unavailable_models", "bool", "false"},
    {"platform_config_file", "string", ""},
    {"saved_model_tags", "string", "serve"},
    {"prefer_tflite_model", "bool", "false"},
    {"num_tflite_pools", "int32", "0"},  // Computed from the CPUs there.
    {"num_tflite_interpreters_per_pool", "int32", "1"},
    {"enable_signature_method_name_check", "bool", "false"},
    {"remove_unused_fields_from_bundle_metagraph", "bool", "true"},
    {"version", "bool", "false"},
    {"file_system_poll_wait_seconds", "int32", "1"},
    {"num_load_threads", "int32", "0"},
    {"num_unload_threads", "int32", "0"},
    {"max_num_load_retries", "int32", "5"},
    {"load_retry_interval_micros", "int64", "60000000"},
    {"flush_filesystem_caches", "bool", "true"},
    {"enable_model_warmup", "bool", "true"},
    {"num_request_iterations_for_warmup", "int32", "0"},
    {"enable_batching", "bool", "false"},
    {"batching_parameters_file", "string", ""},
    {"enable_per_model_batching_parameters", "bool", "false"},
    {"tensorflow_session_parallelism", "int64", "0"},
    {"tensorflow_intra_op_parallelism", "int64", "0"},
    {"tensorflow_inter_op_parallelism", "int64", "0"},
    {"tensorflow_session_config_file", "string", ""},
    {"per_process_gpu_memory_fraction", "float", "0"},
    {"xla_cpu_compilation_enabled", "bool", "false"},
    {"xla_gpu_compilation_enabled", "bool", "false"},
    {"mixed_precision", "string", ""},
    {"thread_pool_factory_config_file", "string", ""},
    {"skip_initialize_tpu", "bool", "false"},
    {"monitoring_config_file", "string", ""},
};

TEST(OptionTable, KnowsEveryFlagOfTheOriginalWithItsTypeAndDefault) {
  static_assert(std::size(kOriginalFlags) == 48);
  std::set<std::string_view> names;
  for (const OriginalFlag& flag : kOriginalFlags) {
    names.insert(flag.name);
    const Option* const option = FindOption(flag.name);
    ASSERT_NE(option, nullptr) << flag.name;
    EXPECT_EQ(option->origin, OptionOrigin::kOriginal) << flag.name;
    EXPECT_EQ(TypeName(*option), flag.type) << flag.name;
    EXPECT_EQ(ValueText(*option, ServerOptions()), flag.value) << flag.name;
  }
  for (const Option& option : OptionTable()) {
    EXPECT_EQ(names.contains(option.name), option.origin == OptionOrigin::kOriginal) << option.name;
  }
}

TEST(OptionTable, SaysWhyWhatDoesNotWorkDoesNot) {
  for (const Option& option : OptionTable()) {
    EXPECT_EQ(option.note.empty(), option.state == OptionState::kWorks) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_THAT(std::string(option.help), Not(HasSubstr("|"))) << option.name;
  }
}

TEST(OptionTable, IsSortedByGroup) {
  const auto table = OptionTable();
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                             [](const Option& a, const Option& b) { return a.group < b.group; }));
}

TEST(OptionValue, ReadsEachType) {
  ServerOptions options;
  EXPECT_TRUE(SetValue(*FindOption("port"), "-1", &options).ok());
  EXPECT_TRUE(SetValue(*FindOption("enable_batching"), "true", &options).ok());
  EXPECT_TRUE(SetValue(*FindOption("load_retry_interval_micros"), "+9000000000", &options).ok());
  EXPECT_TRUE(SetValue(*FindOption("per_process_gpu_memory_fraction"), "0.25", &options).ok());
  EXPECT_TRUE(SetValue(*FindOption("model_name"), "a=b", &options).ok());
  EXPECT_EQ(options.port, -1);
  EXPECT_TRUE(options.enable_batching);
  EXPECT_EQ(options.load_retry_interval_micros, 9'000'000'000);
  EXPECT_EQ(options.per_process_gpu_memory_fraction, 0.25f);
  EXPECT_EQ(options.model_name, "a=b");
}

TEST(OptionValue, RefusesWhatIsNotOfItsTypeAndNamesIt) {
  ServerOptions options;
  struct Bad {
    std::string_view option;
    std::string_view text;
    std::string_view words;
  };
  const Bad cases[] = {
      {"port", "80x", "--port takes a value of type int32, not \"80x\""},
      {"port", "", "--port takes a value of type int32, not \"\""},
      {"port", "3000000000", "--port takes a value of type int32, not \"3000000000\""},
      {"port", "+-1", "--port takes a value of type int32, not \"+-1\""},
      {"enable_batching", "1", "--enable_batching takes true or false, not \"1\""},
      {"log_format", "xml", "--log_format takes one of text,json, not \"xml\""},
      {"log_format", "text,json", "--log_format takes one of text,json, not \"text,json\""},
      {"log_format", "", "--log_format takes one of text,json, not \"\""},
  };
  for (const Bad& bad : cases) {
    const absl::Status status = SetValue(*FindOption(bad.option), bad.text, &options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(base::Message(status), bad.words);
  }
  EXPECT_EQ(options, ServerOptions());
}

TEST(OptionValue, ArgumentsNameOnlyWhatIsNotTheDefault) {
  ServerOptions options;
  EXPECT_THAT(ToArguments(options), IsEmpty());
  options.port = 0;
  options.enable_profiler = false;
  options.model_base_path = "/m o d";
  EXPECT_THAT(ToArguments(options),
              ElementsAre("--port=0", "--enable_profiler=false", "--model_base_path=/m o d"));
}

TEST(SettingRows, SayWhatEachSettingDoes) {
  EXPECT_GT(SettingRows().size(), 10u);
  for (const SettingRow& row : SettingRows()) {
    EXPECT_FALSE(row.help.empty()) << row.name << " has no line in config/settings_page.cc";
  }
}

TEST(ConfigPage, IsTheCommittedOne) {
  std::ifstream file(TENSORD_SOURCE_DIR "/docs/config.md");
  std::stringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), ConfigPage())
      << "docs/config.md is stale: run `tensord docs config > docs/config.md`";
}

}  // namespace
}  // namespace tensord::config
