// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/channel_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace tensord::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ErrorOf(std::string_view text) {
  std::vector<std::string> warnings;
  const absl::Status status = ParseChannelArguments(text, &warnings).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(base::Message(status));
}

TEST(ChannelArguments, NothingGivenChangesNothing) {
  std::vector<std::string> warnings;
  EXPECT_EQ(*ParseChannelArguments("", &warnings), ChannelArguments());
  EXPECT_EQ(*ParseChannelArguments(",,", &warnings), ChannelArguments());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(ChannelArguments, EveryOneThatIsKnownIsRead) {
  std::vector<std::string> warnings;
  const auto read = ParseChannelArguments(
      "grpc.max_receive_message_length=1000,grpc.max_send_message_length=2000,"
      "grpc.max_concurrent_streams=7,grpc.max_connection_idle_ms=100,"
      "grpc.max_connection_age_ms=200,grpc.max_connection_age_grace_ms=0,"
      "grpc.keepalive_time_ms=400,grpc.keepalive_timeout_ms=500,"
      "grpc.keepalive_permit_without_calls=1,grpc.default_compression_algorithm=2",
      &warnings);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, (ChannelArguments{.receive_bytes_max = 1000,
                                     .send_bytes_max = 2000,
                                     .streams_max = 7,
                                     .idle_max = absl::Milliseconds(100),
                                     .age_max = absl::Milliseconds(200),
                                     .age_grace = absl::ZeroDuration(),
                                     .keepalive_every = absl::Milliseconds(400),
                                     .keepalive_wait = absl::Milliseconds(500),
                                     .keepalive_without_calls = true,
                                     .compression = ChannelArguments::Compression::kGzip}));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(ChannelArguments, MinusOneAndTheLargestNumberMeanNoLimit) {
  const auto read = ParseChannelArguments(
      "grpc.max_receive_message_length=-1,grpc.max_connection_idle_ms=2147483647", nullptr);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->receive_bytes_max.has_value());
  EXPECT_EQ(read->idle_max, absl::InfiniteDuration());
}

TEST(ChannelArguments, WhatMeansNothingHereIsListedOnce) {
  std::vector<std::string> warnings;
  EXPECT_TRUE(ParseChannelArguments("grpc.so_reuseport=0,grpc.x=some text", &warnings).ok());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("grpc.so_reuseport, grpc.x has no effect")));
}

TEST(ChannelArguments, AnItemWithoutEqualsIsNamed) {
  EXPECT_THAT(ErrorOf("grpc.max_concurrent_streams=1,oops"), HasSubstr("\"oops\" has no \"=\""));
}

TEST(ChannelArguments, ANumberOutOfRangeIsNamed) {
  EXPECT_THAT(ErrorOf("grpc.max_concurrent_streams=0"),
              HasSubstr("grpc.max_concurrent_streams takes a number from 1"));
  EXPECT_THAT(ErrorOf("grpc.max_connection_age_ms=soon"), HasSubstr("not \"soon\""));
  EXPECT_THAT(ErrorOf("grpc.keepalive_time_ms=99999999999"), HasSubstr("not \"99999999999\""));
  EXPECT_THAT(ErrorOf("grpc.max_send_message_length="), HasSubstr("not \"\""));
}

}  // namespace
}  // namespace tensord::config
