// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/gather.h"
#include "check/json.h"
#include "check/print.h"
#include "config/testing/text_file.h"

namespace tensord::check {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A folder for models until the end of the test.
class Folder {
 public:
  Folder() : path_(base::Cat(testing::TempDir(), "/tensord_check_", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string path(const std::string& below) const { return path_ + "/" + below; }
  void Write(const std::string& below, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(below)).parent_path());
    std::ofstream(path(below)) << text;
    // Long ago, so that nobody waits for more.
    std::filesystem::last_write_time(
        path(below), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }

 private:
  const std::string path_;
};

TEST(GatherFlags, ListsWhatDoesSomethingElseThanInTheOriginal) {
  Report report;
  GatherFlags({.grpc_max_threads = 4, .use_alts_credentials = true, .model_name = "m"}, &report);
  ASSERT_EQ(report.flags.size(), 2u);
  EXPECT_EQ(report.flags[0].name, "grpc_max_threads");
  EXPECT_EQ(report.flags[0].state, "not needed");
  EXPECT_EQ(report.flags[1].state, "refused");
  EXPECT_THAT(report.flags[1].note, HasSubstr("ALTS"));
}

TEST(GatherPlatforms, SaysHowModelsAreBatched) {
  Report report;
  GatherPlatforms({{"tensorflow",
                    {.batching = config::BatchingParameters{.max_batch_size = 8,
                                                            .allowed_batch_sizes = {4, 8}}}}},
                  &report);
  EXPECT_THAT(report.platforms[0].lines, Contains("batching: max_batch_size: 8"));
  EXPECT_THAT(report.platforms[0].lines, Contains("batching: num_batch_threads: tensord decides"));
  EXPECT_THAT(report.platforms[0].lines, Contains("batching: padded to 4, 8 rows"));
}

TEST(GatherModels, FindsMissingPathsLabelsAndBatchingFiles) {
  const Folder folder;
  // A serialized SavedModel of version 1 with nothing in it: complete, as far as a look can tell.
  folder.Write("m/3/saved_model.pb", std::string("\x08\x01", 2));
  folder.Write("m/3/batching_params.pbtxt", "max_batch_size: 4");
  folder.Write("m/4/variables/variables.index", "");
  const config::Platforms platforms = {
      {"tensorflow", {.batching = config::BatchingParameters(), .per_model_batching = true}}};
  Report report;
  GatherModels({{.name = "m",
                 .base_path = folder.path("m"),
                 .policy = {.kind = config::VersionPolicy::Kind::kAll},
                 .labels = {{"stable", 9}}},
                {.name = "none", .base_path = folder.path("none")}},
               platforms, &report);
  ASSERT_EQ(report.models.size(), 2u);
  ASSERT_EQ(report.models[0].versions.size(), 2u);
  EXPECT_EQ(report.models[0].policy, "all");
  EXPECT_EQ(report.models[0].versions[0].number, 4);
  EXPECT_THAT(report.models[0].versions[0].waits_for, HasSubstr("there is no saved_model.pb"));
  EXPECT_THAT(report.errors, Contains(HasSubstr("batching_params.pbtxt:1:17")));
  EXPECT_THAT(report.errors, Contains(HasSubstr("/none does not exist")));
  EXPECT_THAT(report.warnings, Contains(HasSubstr("label \"stable\" points to version 9")));
}

TEST(GatherModels, WarnsOfAVersionThatLooksCut) {
  const Folder folder;
  // The length of a field that does not follow.
  folder.Write("m/1/saved_model.pb", std::string("\x08\x01\x12\x7fzz", 6));
  Report report;
  GatherModels({{.name = "m", .base_path = folder.path("m")}}, {{"tensorflow", {}}}, &report);
  EXPECT_THAT(
      report.warnings,
      Contains(HasSubstr("version 1 would be tried, and probably fail: saved_model.pb ends")));
}

TEST(GatherModels, SaysOfAVersionThatThePolicyLeavesOutOnlyThat) {
  const Folder folder;
  folder.Write("m/1/saved_model.pb", std::string("\x08\x01", 2));
  folder.Write("m/2/saved_model.pb", std::string("\x08\x01", 2));
  Report report;
  GatherModels({{.name = "m",
                 .base_path = folder.path("m"),
                 .policy = {.kind = config::VersionPolicy::Kind::kSpecific, .specific = {1, 7}}}},
               {{"tensorflow", {}}}, &report);
  EXPECT_THAT(ToText(report), HasSubstr("version 2: not wanted by the policy\n"));
  EXPECT_THAT(ToText(report), HasSubstr("version 1: complete, 0 MiB, would be loaded\n"));
  EXPECT_THAT(report.warnings, Contains(HasSubstr("version 7, which the version policy asks for")));
}

TEST(Gather, FindsAllMistakesAtOnce) {
  const config::TextFile bad("x");
  config::CommandLine line;
  line.options.port = 0;
  line.options.grpc_socket_path = "/nowhere/socket";
  line.options.model_config_file = bad.path();
  line.options.monitoring_config_file = bad.path();
  line.options.model_settings_file = bad.path();
  const Report report = Gather(config::Style::kOriginal, line);
  for (const char* message : {"tensorflow.serving.ModelServerConfig",
                              "tensorflow.serving.MonitoringConfig", "tensord.ModelSettingsFile"}) {
    EXPECT_THAT(report.errors, Contains(HasSubstr(message)));
  }
  EXPECT_THAT(report.listeners, ElementsAre("gRPC on the UNIX socket /nowhere/socket"));
  EXPECT_THAT(report.differences, Not(IsEmpty()));
  EXPECT_THAT(Gather(config::Style::kServe, line).differences, IsEmpty());
  EXPECT_THAT(ToText(report), HasSubstr("The server would not start"));
  EXPECT_THAT(ToJson(report), HasSubstr("\"ok\": false"));
}

}  // namespace
}  // namespace tensord::check
