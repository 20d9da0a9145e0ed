// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/session_overrides.h"

#include <filesystem>
#include <fstream>

#include "base/protobuf_wire.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A SavedModelConfig with these SessionOverrides.
std::string Config(std::string_view overrides) {
  std::string bytes;
  base::AppendBytesField(1, overrides, &bytes);
  return bytes;
}

TEST(SessionOverrides, TurnTheMetaOptimizerOff) {
  const auto overrides = ParseSavedModelConfig(Config("\x18\x01"));
  ASSERT_TRUE(overrides.ok());
  // As Python serializes ConfigProto(graph_options=...(disable_meta_optimizer=True)).
  EXPECT_EQ(overrides->config, "\x52\x05\x52\x03\x98\x01\x01");
  EXPECT_THAT(overrides->warnings, IsEmpty());
}

TEST(SessionOverrides, OfAnEmptyConfigAreNone) {
  EXPECT_EQ(ParseSavedModelConfig("")->config, "");
  EXPECT_EQ(ParseSavedModelConfig(Config(std::string_view("\x18\x00", 2)))->config, "");
}

TEST(SessionOverrides, NobodyHereCanFollowAreSaid) {
  std::string inner;
  base::AppendBytesField(2, "", &inner);
  const auto overrides = ParseSavedModelConfig(Config(inner));
  ASSERT_TRUE(overrides.ok());
  EXPECT_THAT(overrides->warnings, ElementsAre(HasSubstr("batch_op_rewriter_config")));
}

TEST(SessionOverrides, OfABrokenFileAreAWarning) {
  EXPECT_FALSE(ParseSavedModelConfig("\x0a\x7f").ok());
  EXPECT_FALSE(ParseSavedModelConfig("no protobuf").ok());
  const std::string directory = testing::TempDir() + "/session_overrides";
  std::filesystem::create_directories(directory + "/assets.extra");
  EXPECT_THAT(ReadSessionOverrides(directory).warnings, IsEmpty()) << "there is no file";
  std::ofstream(directory + "/assets.extra/saved_model_config.pb") << "no protobuf";
  EXPECT_THAT(ReadSessionOverrides(directory).warnings, ElementsAre(HasSubstr("is ignored")));
  std::ofstream(directory + "/assets.extra/saved_model_config.pb") << Config("\x18\x01");
  EXPECT_NE(ReadSessionOverrides(directory).config, "");
}

}  // namespace
}  // namespace tensord::engine
