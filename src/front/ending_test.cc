// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Service::OnDone: every request ends once, whatever becomes of it, in both protocols.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "front/testing/h2_client.h"

namespace tensord::front {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using End = EchoService::End;

auto Code(absl::StatusCode code) { return Field("code", &End::code, code); }

std::string Get(std::string_view target) {
  return base::Cat("GET ", target, " HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(Ending, AnAnswerThatWasWrittenIsTheEnd) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string request = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  const std::string answer = f.Talk(&client, request);
  ASSERT_THAT(f.service().ends, SizeIs(1));
  const End& end = f.service().ends[0];
  EXPECT_EQ(end.code, absl::StatusCode::kOk);
  EXPECT_EQ(end.http_status, 200);
  EXPECT_TRUE(end.delivered);
  EXPECT_EQ(end.body_bytes, 3u);
  EXPECT_EQ(end.answer_bytes, answer.size() - answer.find("\r\n\r\n") - 4);
}

TEST(Ending, PipelinedRequestsEndOneByOne) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, Get("/1") + Get("/2") + Get("/3"));
  EXPECT_THAT(f.service().ends, SizeIs(3));
}

TEST(Ending, AnAnswerThatTheClientDoesNotReadHasNotEnded) {
  EdgeFixture f;
  RawClient client = f.Connect();
  client.Send(Get("/big/20000000"));
  f.Pump();
  f.Advance(absl::Seconds(5));
  EXPECT_THAT(f.service().ends, IsEmpty());
  f.Talk(&client, "");
  ASSERT_THAT(f.service().ends, SizeIs(1));
  EXPECT_TRUE(f.service().ends[0].delivered);
  EXPECT_GE(f.service().ends[0].total, absl::Seconds(5));
}

TEST(Ending, AClientThatGoesAwayAmidTheAnswerHasItUndelivered) {
  EdgeFixture f;
  RawClient client = f.Connect();
  client.Send(Get("/big/20000000"));
  f.Pump();
  client.Close();
  f.Pump();
  ASSERT_THAT(f.service().ends, ElementsAre(Code(absl::StatusCode::kOk)));
  EXPECT_FALSE(f.service().ends[0].delivered);
}

TEST(Ending, AClientThatGoesAwayBeforeTheAnswerHasCancelled) {
  EdgeFixture f;
  RawClient client = f.Connect();
  client.Send(Get("/hang"));
  f.Pump();
  EXPECT_THAT(f.service().ends, IsEmpty());
  client.Close();
  f.Pump();
  ASSERT_THAT(f.service().ends, ElementsAre(Code(absl::StatusCode::kCancelled)));
  EXPECT_EQ(f.service().ends[0].http_status, 0);
}

TEST(Ending, WhatTheConnectionRefusesEndsToo) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "nonsense HTTP/1.1\r\n\r\n");
  ASSERT_THAT(f.service().ends, SizeIs(1));
  EXPECT_EQ(f.service().ends[0].http_status, 400);
  EXPECT_EQ(f.service().ends[0].code, absl::StatusCode::kInvalidArgument);
}

TEST(Ending, AnAnswerAtTheHeadIsTheEndThoughTheBodyStillComes) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
  EXPECT_THAT(f.service().ends, SizeIs(1));
  f.Talk(&client, "abc");
  EXPECT_THAT(f.service().ends, SizeIs(1));
}

TEST(Ending, CallsOfOneConnectionEndEachOnce) {
  EdgeFixture f;
  H2Client client(&f);
  client.Call("Call", "hello");
  client.Call("Fail", "no");
  client.Call("Big", "300000");
  client.Run();
  ASSERT_THAT(f.service().ends, SizeIs(3));
  EXPECT_THAT(f.service().ends, UnorderedElementsAre(Code(absl::StatusCode::kOk),
                                                     Code(absl::StatusCode::kInvalidArgument),
                                                     Code(absl::StatusCode::kOk)));
  EXPECT_THAT(f.service().ends, Contains(Field(&End::answer_bytes, 300'005u)));
  EXPECT_THAT(f.service().ends, Each(Field(&End::delivered, true)));
}

TEST(Ending, AResetIsACancel) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Call("Hang", "");
  client.Run();
  EXPECT_THAT(f.service().ends, IsEmpty());
  client.Reset(stream);
  client.Run();
  EXPECT_THAT(f.service().ends, ElementsAre(Code(absl::StatusCode::kCancelled)));
}

TEST(Ending, AResetAtTheClientsOwnDeadlineIsADeadline) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Call("Hang", "", {{"grpc-timeout", "100S"}});
  client.Run();
  f.Advance(absl::Seconds(96));
  client.Reset(stream);
  client.Run();
  EXPECT_THAT(f.service().ends, ElementsAre(Code(absl::StatusCode::kDeadlineExceeded)));
}

}  // namespace
}  // namespace tensord::front
