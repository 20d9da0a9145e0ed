// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/text_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/limits.h"
#include "base/text.h"
#include "config/testing/text_file.h"
#include "config/text_proto.h"
#include "tensord/model_server_config.pb.h"

namespace tensord::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Kind = VersionPolicy::Kind;

const Platforms kTensorFlow = {{"tensorflow", {}}};

absl::StatusOr<std::vector<ModelEntry>> Models(const std::string& text,
                                               Warnings* warnings = nullptr) {
  const TextFile file(text);
  return LoadModels({.model_config_file = file.path()}, kTensorFlow, warnings);
}

std::string ModelError(const std::string& text) {
  return std::string(base::Message(Models(text).status()));
}

TEST(LoadModels, ReadsNamesPathsPoliciesAndLabels) {
  const auto models = Models(R"(
      model_config_list {
        config { name: "a" base_path: "/m/a" model_platform: "tensorflow" }
        config { name: "b" base_path: "/m/b" model_type: TENSORFLOW
                 model_version_policy { latest { num_versions: 2 } } }
        config { name: "c" base_path: "/m/c" model_platform: "tensorflow"
                 model_version_policy { specific { versions: 9 versions: 3 versions: 9 } }
                 version_labels { key: "stable" value: 3 } }
        config { name: "d" base_path: "/m/d" model_platform: "tensorflow"
                 model_version_policy { all {} } }
        config { name: "e" base_path: "/m/e" model_platform: "tensorflow"
                 model_version_policy { latest {} } }
      })");
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_THAT(
      *models,
      ElementsAre(ModelEntry{.name = "a", .base_path = "/m/a"},
                  ModelEntry{.name = "b", .base_path = "/m/b", .policy = {.latest = 2}},
                  ModelEntry{.name = "c",
                             .base_path = "/m/c",
                             .policy = {.kind = Kind::kSpecific, .specific = {3, 9}},
                             .labels = {{"stable", 3}}},
                  ModelEntry{.name = "d", .base_path = "/m/d", .policy = {.kind = Kind::kAll}},
                  ModelEntry{.name = "e", .base_path = "/m/e"}));
}

TEST(LoadModels, MakesOneModelOfNameAndBasePath) {
  const auto models =
      LoadModels({.model_name = "half", .model_base_path = "/m"}, kTensorFlow, nullptr);
  ASSERT_TRUE(models.ok());
  EXPECT_THAT(*models, ElementsAre(ModelEntry{.name = "half", .base_path = "/m"}));
  EXPECT_EQ(base::Message(LoadModels({.model_base_path = "m"}, kTensorFlow, nullptr).status()),
            "Expected model default to have an absolute path or URI; got base_path()=m");
}

TEST(LoadModels, TakesAFileUriForThePathInIt) {
  for (const char* uri : {"file:///m", "file://localhost/m"}) {
    const auto models = LoadModels({.model_base_path = uri}, kTensorFlow, nullptr);
    ASSERT_TRUE(models.ok()) << models.status();
    EXPECT_EQ(models->front().base_path, "/m");
  }
  for (const char* uri : {"file://elsewhere/m", "file://m", "file:/m"}) {
    EXPECT_FALSE(LoadModels({.model_base_path = uri}, kTensorFlow, nullptr).ok()) << uri;
  }
}

// What a front leaves for the next one.
TEST(FileTexts, MakeAgainWhatTheFilesMadeThen) {
  FileTexts texts;
  ServerOptions options;
  std::vector<ModelEntry> models;
  std::map<std::string, ModelSettings> settings;
  Monitoring monitoring;
  {
    const TextFile list(
        R"(model_config_list { config { name: "a" base_path: "/a" model_platform: "tensorflow" } })");
    const TextFile ours(R"(model { key: "a" value { executors: 2 } })");
    const TextFile page("prometheus_config { enable: true }");
    options = {.model_config_file = list.path(),
               .model_settings_file = ours.path(),
               .monitoring_config_file = page.path()};
    models = LoadModels(options, kTensorFlow, nullptr, Unset::kError, &texts).value();
    settings = LoadModelSettings(options, &texts).value();
    monitoring = LoadMonitoring(options, &texts).value();
  }
  EXPECT_EQ(texts.size(), 3u);
  EXPECT_FALSE(LoadModelSettings(options).ok()) << "the files are gone";
  const FileTexts before = texts;
  EXPECT_EQ(LoadModels(options, kTensorFlow, nullptr, Unset::kError, &texts).value(), models);
  EXPECT_EQ(LoadModelSettings(options, &texts).value(), settings);
  EXPECT_EQ(LoadMonitoring(options, &texts).value(), monitoring);
  EXPECT_EQ(texts, before);
}

TEST(LoadModels, TakesAnEmptyFileForNoModels) {
  const auto models = Models("");
  ASSERT_TRUE(models.ok());
  EXPECT_THAT(*models, IsEmpty());
}

TEST(LoadModels, RefusesInTheOriginalsWords) {
  const auto one = [](const std::string& model) {
    return "model_config_list { config { " + model + " } }";
  };
  EXPECT_EQ(ModelError(one(R"(name: "a" base_path: "/m")")),
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
            "ModelServerConfig::model_platform.");
  EXPECT_EQ(ModelError(
                one(R"(name: "a" base_path: "/m" model_platform: "tensorflow" model_type: OTHER)")),
            "Illegal setting both ModelServerConfig::model_type (deprecated) and "
            "ModelServerConfig::model_platform.");
  EXPECT_EQ(ModelError(one(R"(name: "a" base_path: "/m" model_type: OTHER)")),
            "ModelServerConfig::model_type choice 2 not supported.");
  EXPECT_EQ(ModelError(one(R"(name: "a" base_path: "/m" model_platform: "onnx")")),
            "Model a requests unsupported platform onnx");
  EXPECT_EQ(ModelError(one(R"(name: "a" base_path: "m" model_platform: "tensorflow")")),
            "Expected model a to have an absolute path or URI; got base_path()=m");
  EXPECT_EQ(ModelError(R"(model_config_list {
                            config { name: "a" base_path: "/m" model_platform: "tensorflow" }
                            config { name: "a" base_path: "/n" model_platform: "tensorflow" } })"),
            "Illegal to list model a multiple times in config list");
  EXPECT_EQ(ModelError("custom_model_config {}"),
            "ModelServer does not yet support custom model config.");
  EXPECT_THAT(ModelError(one(R"(name: "a" base_path: "gs://b/m" model_platform: "tensorflow")")),
              HasSubstr("remote stores are not supported yet"));
  EXPECT_THAT(ModelError(one(R"(base_path: "/m" model_platform: "tensorflow")")),
              HasSubstr("has no name"));
}

TEST(LoadModels, SaysFileLineAndColumnOfATextError) {
  const TextFile file("model_config_list {\n  config {\n    nam: \"a\"\n  }\n}\n");
  EXPECT_EQ(
      base::Message(LoadModels({.model_config_file = file.path()}, kTensorFlow, nullptr).status()),
      base::Cat("Error parsing text-format tensorflow.serving.ModelServerConfig: ", file.path(),
                ":3:8: Message type \"tensorflow.serving.ModelConfig\" has no field named "
                "\"nam\"."));
}

TEST(LoadModels, SaysWhyAFileCannotBeRead) {
  const absl::Status missing =
      LoadModels({.model_config_file = "/no/such"}, kTensorFlow, nullptr).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(base::Message(missing), "--model_config_file=/no/such: there is no such file");
  EXPECT_EQ(base::Message(LoadModels({.model_config_file = "/"}, kTensorFlow, nullptr).status()),
            "--model_config_file=/: this is a directory; name a file in it");
  const TextFile large(std::string(limits::kConfigFileBytesMax + 1, ' '));
  EXPECT_THAT(std::string(base::Message(
                  LoadModels({.model_config_file = large.path()}, kTensorFlow, nullptr).status())),
              HasSubstr("this is no configuration file"));
}

// Each of these would be waited for, or read, without an end.
TEST(ReadFile, PipesAndDevicesAreRefusedAtOnce) {
  const TextFile place("");
  std::filesystem::remove(place.path());
  ASSERT_EQ(mkfifo(place.path().c_str(), 0600), 0);
  for (const std::string& path : {place.path(), std::string("/dev/zero")}) {
    const absl::Status status = ReadFile("access_rules_file", path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(base::Message(status)),
                HasSubstr(base::Cat("--access_rules_file=", path, ": this is no regular file")));
  }
}

TEST(LoadModels, WarnsAboutWhatHasNoEffect) {
  Warnings warnings;
  ASSERT_TRUE(
      Models(R"(model_config_list { config { name: "a" base_path: "/m" model_type: TENSORFLOW } })",
             &warnings)
          .ok());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("Prefer ModelServerConfig::model_platform.")));
}

absl::StatusOr<Monitoring> Metrics(const std::string& text) {
  const TextFile file(text);
  return LoadMonitoring({.monitoring_config_file = file.path()});
}

TEST(LoadMonitoring, ReadsTheMetricsPage) {
  EXPECT_EQ(LoadMonitoring({}).value(), Monitoring());
  EXPECT_EQ(Metrics("prometheus_config { enable: true }").value(), Monitoring{.prometheus = true});
  EXPECT_EQ(Metrics("prometheus_config { enable: true path: \"/m\" }").value(),
            (Monitoring{.prometheus = true, .path = "/m"}));
  EXPECT_THAT(std::string(base::Message(Metrics("prometheus_config { path: \"m\" }").status())),
              HasSubstr("prometheus_config.path must begin with /, not be \"m\""));
}

absl::StatusOr<std::map<std::string, ModelSettings>> Settings(const std::string& text) {
  const TextFile file(text);
  return LoadModelSettings({.model_settings_file = file.path()});
}

TEST(LoadModelSettings, ReadsEveryField) {
  EXPECT_THAT(LoadModelSettings({}).value(), IsEmpty());
  const auto settings = Settings(R"(
      model { key: "a" value {} }
      model { key: "b" value {
        executors: 2 intra_op_threads: 3 inter_op_threads: 4 replicas: 5
        warm_up_rows: 1 warm_up_rows: 8 synthetic_warm_up: false onednn: ONEDNN_OFF
        op_libraries: "/l.so" memory_limit_bytes: 6 model_memory_limit_bytes: 9
        run_timeout_ms: 7 load_timeout_ms: 8
        batching { enabled: true rows_max: 8 timeout_micros: 0 }
        runs_in_caller: false sandbox: false sandbox_stage: 1 } })");
  ASSERT_TRUE(settings.ok()) << settings.status();
  const ModelSettings all{.executors = 2,
                          .intra_op_threads = 3,
                          .inter_op_threads = 4,
                          .replicas = 5,
                          .warm_up_rows = {1, 8},
                          .synthetic_warm_up = false,
                          .onednn = ModelSettings::OneDnn::kOff,
                          .op_libraries = {"/l.so"},
                          .memory_limit_bytes = 6,
                          .model_memory_limit_bytes = 9,
                          .run_timeout_ms = 7,
                          .load_timeout_ms = 8,
                          .batching_enabled = true,
                          .batch_rows_max = 8,
                          .batch_timeout_micros = 0,
                          .runs_in_caller = false,
                          .sandbox = false,
                          .sandbox_stage = 1};
  EXPECT_THAT(*settings, ElementsAre(Pair("a", ModelSettings()), Pair("b", all)));
}

TEST(LoadModelSettings, NamesFileModelAndFieldOfABadValue) {
  const auto error = [](const std::string& fields) {
    const absl::Status status = Settings("model { key: \"m\" value { " + fields + " } }").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << fields;
    return std::string(base::Message(status));
  };
  EXPECT_THAT(error("executors: 0"),
              HasSubstr(".pbtxt: model m: executors must be from 1 to 65536, not 0"));
  EXPECT_THAT(error("replicas: 4000000000"), HasSubstr("replicas must be from 1 to 65536"));
  EXPECT_THAT(error("sandbox_stage: 3"), HasSubstr("sandbox_stage must be 1 or 2, not 3"));
  EXPECT_THAT(error("warm_up_rows: 0"), HasSubstr("warm_up_rows must be"));
  EXPECT_THAT(error("batching { rows_max: 0 }"), HasSubstr("batching.rows_max must be"));
  EXPECT_THAT(error("batching { timeout_micros: -1 }"),
              HasSubstr("batching.timeout_micros must be"));
  EXPECT_THAT(error("run_timeout_ms: 0"), HasSubstr("run_timeout_ms must be at least 1, not 0"));
  EXPECT_THAT(error("load_timeout_ms: 0"), HasSubstr("load_timeout_ms must be at least 1, not 0"));
  EXPECT_THAT(error("op_libraries: \"l.so\""), HasSubstr("must be absolute paths, not \"l.so\""));
  EXPECT_THAT(error("speed: 1"),
              HasSubstr("Error parsing text-format tensord.ModelSettingsFile: "));
}

TEST(CheckFiles, FindsTheBadFileAmongAll) {
  const TextFile file("x");
  EXPECT_TRUE(CheckFiles({.model_base_path = "/m"}, nullptr).ok());
  EXPECT_FALSE(CheckFiles({.model_config_file = file.path()}, nullptr).ok());
  EXPECT_FALSE(
      CheckFiles({.model_base_path = "/m", .model_settings_file = file.path()}, nullptr).ok());
  EXPECT_FALSE(
      CheckFiles({.model_base_path = "/m", .monitoring_config_file = file.path()}, nullptr).ok());
  EXPECT_FALSE(CheckFiles({.model_base_path = "/m",
                           .enable_batching = true,
                           .batching_parameters_file = file.path()},
                          nullptr)
                   .ok());
}

}  // namespace
}  // namespace tensord::config
