// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/model_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/protobuf_wire.h"

namespace tensord::engine {
namespace {

using ::testing::ElementsAre;

ModelInfo FullInfo() {
  ModelInfo info;
  info.signature_def_map = std::string("\x0a\x00\xff", 3);
  info.runtime_version = "2.21.0";
  info.devices = {"/device:CPU:0", "/device:GPU:0"};
  info.stateful_reason = "AssignVariableOp in signature 'incr'";
  info.warnings = {"one", ""};
  info.sandbox = {"seccomp: on"};
  info.sandbox_grade = "B";
  info.sandbox_stage = 1;
  info.private_bytes = 1ull << 40;
  info.warm_up_runs = 7;
  info.load_microseconds = 1234567;
  info.warm_up_microseconds = 89;
  return info;
}

TEST(ModelInfo, ComesBackAsItWas) {
  const auto parsed = ParseModelInfo(Serialize(FullInfo()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->signature_def_map, FullInfo().signature_def_map);
  EXPECT_EQ(parsed->runtime_version, "2.21.0");
  EXPECT_THAT(parsed->devices, ElementsAre("/device:CPU:0", "/device:GPU:0"));
  EXPECT_EQ(parsed->stateful_reason, "AssignVariableOp in signature 'incr'");
  EXPECT_THAT(parsed->warnings, ElementsAre("one", ""));
  EXPECT_THAT(parsed->sandbox, ElementsAre("seccomp: on"));
  EXPECT_EQ(parsed->sandbox_grade, "B");
  EXPECT_EQ(parsed->sandbox_stage, 1u);
  EXPECT_EQ(parsed->private_bytes, 1ull << 40);
  EXPECT_EQ(parsed->warm_up_runs, 7u);
  EXPECT_EQ(parsed->load_microseconds, 1234567u);
  EXPECT_EQ(parsed->warm_up_microseconds, 89u);
}

TEST(ModelInfo, TellsAnEmptyFileFromNone) {
  ModelInfo info;
  EXPECT_EQ(ParseModelInfo(Serialize(info))->batching_parameters, std::nullopt);
  info.batching_parameters = "";
  EXPECT_EQ(ParseModelInfo(Serialize(info))->batching_parameters, "");
  info.batching_parameters = "text";
  EXPECT_EQ(ParseModelInfo(Serialize(info))->batching_parameters, "text");
}

TEST(ModelInfo, AnyCutIsRefusedOrWhole) {
  const std::string bytes = Serialize(FullInfo());
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A cut between two fields is a shorter description; anywhere else, an error. Never a crash.
    const auto parsed = ParseModelInfo(std::string_view(bytes).substr(0, length));
    EXPECT_TRUE(parsed.ok() || absl::IsInvalidArgument(parsed.status()));
  }
  EXPECT_FALSE(ParseModelInfo("\x0a\x7f").ok());
}

TEST(ModelInfo, UnknownFieldsAndWrongTypesAreRefused) {
  std::string unknown;
  base::AppendBytesField(99, "x", &unknown);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseModelInfo(unknown).status()));
  std::string number_as_text;
  base::AppendBytesField(7, "x", &number_as_text);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseModelInfo(number_as_text).status()));
  std::string text_as_number;
  base::AppendVarintField(2, 1, &text_as_number);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseModelInfo(text_as_number).status()));
}

TEST(ModelInfo, AHostileWorkerCannotMakeTheFrontHoldMuchText) {
  std::string many;
  for (int i = 0; i < 5000; ++i) base::AppendBytesField(5, "w", &many);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseModelInfo(many).status()));
  std::string lengthy;
  base::AppendBytesField(6, std::string(70'000, 'x'), &lengthy);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseModelInfo(lengthy).status()));
}

}  // namespace
}  // namespace tensord::engine
