// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "front/testing/edge_fixture.h"
#include "front/testing/gzip.h"
#include "front/testing/h2_client.h"

namespace tensord::front {
namespace {

std::string Get(H2Client* client, int32_t stream, const std::string& name) {
  const auto& headers = client->result(stream).headers;
  const auto at = headers.find(name);
  return at == headers.end() ? "" : at->second;
}

const H2Client::Fields kChat = {{":method", "POST"},          {":scheme", "http"},
                                {":path", "/echo.Echo/Chat"}, {":authority", "test"},
                                {"te", "trailers"},           {"content-type", "application/grpc"}};

H2Client::Fields Chat(const H2Client::Fields& more) {
  H2Client::Fields head = kChat;
  head.insert(head.end(), more.begin(), more.end());
  return head;
}

std::string DataFrame(int32_t stream, std::string_view bytes, bool end = false) {
  return RawFrame(NGHTTP2_DATA, end ? NGHTTP2_FLAG_END_STREAM : 0, static_cast<uint32_t>(stream),
                  bytes);
}

TEST(Http2Streaming, EachMessageIsAnsweredWhenItComes) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(kChat, GrpcFrame("one"), /*open=*/true);
  client.Run();
  EXPECT_EQ(client.result(stream).body, GrpcFrame("one"));
  EXPECT_EQ(Get(&client, stream, "content-type"), "application/grpc");
  EXPECT_FALSE(client.result(stream).closed);
  client.SendRaw(DataFrame(stream, GrpcFrame("two") + GrpcFrame("") + GrpcFrame("three")));
  client.Run();
  EXPECT_EQ(client.result(stream).body,
            GrpcFrame("one") + GrpcFrame("two") + GrpcFrame("") + GrpcFrame("three"));
  client.SendRaw(DataFrame(stream, "", /*end=*/true));
  client.Run();
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "0");
  EXPECT_EQ(f.listener()->open_calls(), 0u);
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2Streaming, AMessageMayComeByteByByte) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(kChat, "", /*open=*/true);
  client.Run();
  for (const char c : GrpcFrame("slow")) {
    client.SendRaw(DataFrame(stream, std::string(1, c)));
    client.Run();
  }
  EXPECT_EQ(client.result(stream).body, GrpcFrame("slow"));
}

TEST(Http2Streaming, AStreamWithoutMessagesEndsWell) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(kChat, "");
  client.Run();
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "0");
  EXPECT_EQ(client.result(stream).header_frames, 1);
}

TEST(Http2Streaming, TheServiceMayEndWithAnErrorAtAnyTime) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t late = client.Submit(kChat, GrpcFrame("one") + GrpcFrame("end"), /*open=*/true);
  const int32_t early = client.Submit(kChat, GrpcFrame("end"), /*open=*/true);
  client.Run();
  EXPECT_EQ(client.result(late).body, GrpcFrame("one"));
  EXPECT_EQ(Get(&client, late, "grpc-message"), "as you wish");
  EXPECT_TRUE(client.result(late).closed);
  EXPECT_EQ(client.result(early).body, "");
  EXPECT_EQ(Get(&client, early, "grpc-status"), "10");
  EXPECT_TRUE(client.result(early).closed);
}

TEST(Http2Streaming, AMessageCutShortIsAnError) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(kChat, GrpcFrame("whole") + GrpcFrame("half").substr(0, 7));
  client.Run();
  EXPECT_EQ(client.result(stream).body, GrpcFrame("whole"));
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "13");
}

TEST(Http2Streaming, AMessageTooLargeIsRefusedByItsClaim) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream =
      client.Submit(kChat, std::string("\0\0\1\0\1", 5), /*open=*/true);  // 64 KiB and one.
  client.Run();
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "8");
}

TEST(Http2Streaming, CompressedMessagesAreInflatedAndBombsAreNot) {
  EdgeFixture f;
  H2Client client(&f);
  const auto head = Chat({{"grpc-encoding", "gzip"}});
  const int32_t good = client.Submit(head, GrpcFrame(Gzip("packed"), 1));
  const int32_t bomb = client.Submit(head, GrpcFrame(Gzip(std::string(100'000, 'a')), 1));
  const int32_t junk = client.Submit(head, GrpcFrame("no gzip", 1));
  client.Run();
  EXPECT_EQ(client.result(good).body, GrpcFrame("packed"));
  EXPECT_EQ(Get(&client, bomb, "grpc-status"), "8");
  EXPECT_EQ(Get(&client, junk, "grpc-status"), "13");
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2Streaming, AnAnswerMayComeWithoutAQuestion) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(kChat, GrpcFrame("keep"), /*open=*/true);
  client.Run();
  ASSERT_EQ(f.service().kept.size(), 1u);
  f.service().kept[0]->Write("news");
  client.Run();
  EXPECT_EQ(client.result(stream).body, GrpcFrame("keep") + GrpcFrame("news"));
  f.Advance(limits::kBodyStallMax * 2);
  client.Run();
  EXPECT_FALSE(client.result(stream).closed);
  f.service().kept.clear();
}

TEST(Http2Streaming, AClientThatLeavesIsNoticed) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(kChat, GrpcFrame("keep"), /*open=*/true);
  client.Run();
  client.Reset(stream);
  client.Run();
  EXPECT_EQ(f.service().counts().cancelled, 1u);
  f.service().kept[0]->Write("too late");
  client.Run();
  f.service().kept.clear();
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2Streaming, AClientThatDoesNotReadIsCutOff) {
  EdgeFixture f;
  H2Client client(&f, /*initial_window=*/1000);
  const int32_t stream = client.Submit(kChat, GrpcFrame("many"), /*open=*/true);
  client.Run();
  EXPECT_TRUE(client.result(stream).closed);
  EXPECT_EQ(client.result(stream).error_code, uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2Streaming, AnAnswerThatIsNotReadEndsTheStreamInTime) {
  EdgeFixture f;
  H2Client client(&f, /*initial_window=*/10);
  const int32_t stream = client.Submit(kChat, GrpcFrame("more than ten bytes"), /*open=*/true);
  client.Run();
  EXPECT_EQ(client.result(stream).body.size(), 10u);
  f.Advance(limits::kWriteStallMax + absl::Seconds(2));
  client.Run();
  EXPECT_TRUE(client.result(stream).closed);
}

TEST(Http2Streaming, ASilentClientIsEndedAfterLong) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(kChat, "", /*open=*/true);
  client.Run();
  f.Advance(limits::kStreamIdleMax + absl::Seconds(2));
  client.Run();
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "4");
}

}  // namespace
}  // namespace tensord::front
