// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/request_logging.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tensord/model_server_config.pb.h"

namespace tensord::config {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::optional<RequestLogging>> Parse(const std::string& logging) {
  tensorflow::serving::ModelConfig model;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(base::Cat("name: 'half' ", logging), &model));
  return ToRequestLogging(model);
}

TEST(RequestLogging, IsOffWithoutTheMessage) { EXPECT_FALSE(Parse("")->has_value()); }

TEST(RequestLogging, TakesRateAndPrefix) {
  const auto logging = Parse(
      "logging_config { log_collector_config { type: 'tfrecord' filename_prefix: '/l/half' }"
      " sampling_config { sampling_rate: 0.25 } }");
  EXPECT_EQ(**logging, (RequestLogging{.sampling_rate = 0.25, .filename_prefix = "/l/half"}));
}

TEST(RequestLogging, TheFirstRuleForThisTaskDecides) {
  const auto logging = Parse(
      "logging_config { log_collector_config { filename_prefix: '/l/half' } sampling_config {"
      " sampling_rate: 0.25"
      " per_task_sampling_configs { dc: 'elsewhere' sampling_rate: 1 }"
      " per_task_sampling_configs { task_index: 3 sampling_rate: 0.9 }"
      " per_task_sampling_configs { task_index: 0 sampling_rate: 0.5 }"
      " per_task_sampling_configs { sampling_rate: 0.75 } } }");
  EXPECT_EQ((*logging)->sampling_rate, 0.5);
}

TEST(RequestLogging, WhatCannotWorkIsRefusedByName) {
  const auto words = [](const std::string& logging) {
    return std::string(base::Message(Parse(base::Cat("logging_config {", logging, "}")).status()));
  };
  EXPECT_THAT(words("log_collector_config { type: 'kafka' filename_prefix: '/a' }"),
              HasSubstr("model half: logging_config: there is no log collector of type \"kafka\""));
  EXPECT_THAT(words("log_collector_config { filename_prefix: 'a' }"), HasSubstr("absolute path"));
  EXPECT_THAT(words("log_collector_config { filename_prefix: '/a/' }"), HasSubstr("absolute path"));
  EXPECT_THAT(words("log_collector_config { filename_prefix: '/a' }"
                    "sampling_config { sampling_rate: nan }"),
              HasSubstr("expected 0 to 1"));
}

}  // namespace
}  // namespace tensord::config
