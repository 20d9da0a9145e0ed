// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/check_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace tensord::models {
namespace {

using testing::HasSubstr;

ModelConfig Model(std::string name, std::string path, std::string platform = "tensorflow") {
  ModelConfig model;
  model.name = std::move(name);
  model.base_path = std::move(path);
  model.platform = std::move(platform);
  return model;
}

struct Row {
  std::string name;
  std::vector<ModelConfig> now;
  std::vector<ModelConfig> next;
  std::string error;  // Empty: the list is fine.
};

class CheckModelsTest : public testing::TestWithParam<Row> {};

TEST_P(CheckModelsTest, JudgesTheList) {
  const Row& row = GetParam();
  const absl::Status status = CheckModels(row.next, row.now);
  if (row.error.empty()) {
    EXPECT_TRUE(status.ok()) << status;
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(base::Message(status)), HasSubstr(row.error));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CheckModelsTest,
    testing::Values(
        Row{"Empty", {}, {}, ""}, Row{"Two", {}, {Model("a", "/a"), Model("b", "/b")}, ""},
        Row{"TwoOnOnePath", {}, {Model("a", "/a"), Model("b", "/a")}, ""},
        Row{"Uri", {}, {Model("a", "gs://bucket/a")}, ""},
        Row{"SameNameTwice",
            {},
            {Model("a", "/a"), Model("a", "/b")},
            "Illegal to list model a multiple times in config list"},
        Row{"RelativePath",
            {},
            {Model("a", "models/a")},
            "Expected model a to have an absolute path or URI; got base_path()=models/a"},
        Row{"EmptyPath", {}, {Model("a", "")}, "Expected model a to have an absolute path"},
        Row{"NoScheme", {}, {Model("a", "://x")}, "Expected model a to have an absolute path"},
        Row{"NulInPath", {}, {Model("a", std::string("/a\0b", 4))}, "NUL"},
        Row{"NoName", {}, {Model("", "/a")}, "has no name"},
        Row{"NoPlatform", {}, {Model("a", "/a", "")}, "Illegal setting neither"},
        Row{"PlatformChanged",
            {Model("a", "/a")},
            {Model("a", "/a", "other")},
            "Illegal to change a model's platform. For model a platform was tensorflow and new "
            "platform requested is other"}),
    [](const auto& row) { return row.param.name; });

TEST(LocalPath, DropsTheFileScheme) {
  EXPECT_EQ(LocalPath("file:///models/a"), "/models/a");
  EXPECT_EQ(LocalPath("/models/a"), "/models/a");
  EXPECT_EQ(LocalPath("gs://models/a"), "gs://models/a");
}

}  // namespace
}  // namespace tensord::models
