// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/http2/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

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

std::string Text(size_t size) {
  std::string text(size, 'a');
  for (size_t i = 0; i < size; i += 7) text[i] = static_cast<char>('b' + i % 23);
  return text;
}

// ---- Compression of answers ------------------------------------------------

const H2Client::Fields kAcceptsGzip = {{"grpc-accept-encoding", "identity, deflate,gzip"}};

H2Client::Fields With(H2Client::Fields fields, const H2Client::Fields& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

TEST(Http2Compression, AnswersAreCompressedAsTheRequestWas) {
  EdgeFixture f;
  H2Client client(&f);
  for (const std::string encoding : {"gzip", "deflate"}) {
    const std::string text = Text(1'000'000);
    const std::string packed = encoding == "gzip" ? Gzip(text) : Zlib(text);
    const H2Client::Fields head = With(kAcceptsGzip, {{":method", "POST"},
                                                      {":scheme", "http"},
                                                      {":path", "/echo.Echo/Call"},
                                                      {":authority", "test"},
                                                      {"content-type", "application/grpc"},
                                                      {"grpc-encoding", encoding}});
    H2Client::Fields ordered(head.begin() + 1, head.end());
    ordered.push_back(head[0]);
    const int32_t stream = client.Submit(ordered, GrpcFrame(packed, 1));
    client.Run();
    EXPECT_EQ(Get(&client, stream, "grpc-encoding"), encoding);
    EXPECT_EQ(Get(&client, stream, "grpc-status"), "0");
    const std::string& body = client.result(stream).body;
    ASSERT_GT(body.size(), 5u);
    EXPECT_LT(body.size(), text.size() / 2);
    EXPECT_EQ(body[0], 1);
    EXPECT_EQ(GrpcFrame(body.substr(5), 1), body);
    EXPECT_TRUE(Inflated(body.substr(5)) == text);
  }
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2Compression, NobodyElseGetsACompressedAnswer) {
  EdgeFixture f;
  H2Client client(&f);
  const std::string text = Text(10'000);
  const int32_t plain = client.Call("Call", text, kAcceptsGzip);
  const int32_t not_accepted = client.Call("Call", text, {{"grpc-encoding", "gzip"}});
  const int32_t small =
      client.Call("Call", "small", With(kAcceptsGzip, {{"grpc-encoding", "gzip"}}));
  client.Run();
  EXPECT_EQ(client.result(plain).body, GrpcFrame(text));
  EXPECT_EQ(client.result(not_accepted).body, GrpcFrame(text));
  EXPECT_EQ(client.result(small).body, GrpcFrame("small"));
}

TEST(Http2Compression, WhatDoesNotGetSmallerStaysAsItIs) {
  EdgeFixture f;
  H2Client client(&f);
  std::mt19937 random(1);
  std::string noise(200'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  const int32_t stream =
      client.Call("Call", noise, With(kAcceptsGzip, {{"grpc-encoding", "gzip"}}));
  client.Run();
  EXPECT_TRUE(client.result(stream).body == GrpcFrame(noise));
  EXPECT_EQ(Get(&client, stream, "grpc-encoding"), "");
}

TEST(Http2Compression, AnOperatorMayAskForIt) {
  EdgeFixture f(ListenerOptions{.http2 = {.answer_encoding = GrpcEncoding::kGzip}});
  H2Client client(&f);
  const int32_t accepts = client.Call("Call", Text(10'000), kAcceptsGzip);
  const int32_t does_not = client.Call("Call", Text(10'000));
  client.Run();
  EXPECT_TRUE(Inflated(client.result(accepts).body.substr(5)) == Text(10'000));
  EXPECT_EQ(client.result(does_not).body, GrpcFrame(Text(10'000)));
}

TEST(Http2Compression, AClientThatLeavesMeanwhileCostsNothingMore) {
  EdgeFixture f;
  {
    H2Client client(&f);
    client.Call("Big", "50000000", With(kAcceptsGzip, {{"grpc-encoding", "gzip"}}));
    const uint8_t* data = nullptr;
    for (ssize_t n = 1; n > 0;) {
      n = nghttp2_session_mem_send(client.session(), &data);
      if (n > 0) client.socket().Send({reinterpret_cast<const char*>(data), size_t(n)});
    }
    for (int i = 0; i < 4; ++i) f.loop().RunOnce(absl::InfinitePast());
    EXPECT_GT(f.budget().used(), 0u);
    client.socket().Close();
  }
  f.Pump();
  EXPECT_EQ(f.budget().used(), 0u);
}

// ---- Sizes and numbers -----------------------------------------------------

TEST(Http2Settings, MessagesAreBoundedBothWays) {
  EdgeFixture f(ListenerOptions{.http2 = {.message_bytes_max = 100, .answer_bytes_max = 50}});
  H2Client client(&f);
  const int32_t large = client.Call("Call", std::string(101, 'x'));
  const int32_t answer = client.Call("Call", std::string(51, 'x'));
  const int32_t fits = client.Call("Call", std::string(50, 'x'));
  client.Run();
  EXPECT_EQ(Get(&client, large, "grpc-status"), "8");
  EXPECT_EQ(Get(&client, large, "grpc-message"), "Received message larger than max (101 vs. 100)");
  EXPECT_EQ(Get(&client, answer, "grpc-status"), "8");
  EXPECT_EQ(Get(&client, answer, "grpc-message"), "Sent message larger than max (51 vs. 50)");
  EXPECT_EQ(Get(&client, fits, "grpc-status"), "0");
}

TEST(Http2Settings, StreamsBeyondTheLimitWait) {
  EdgeFixture f(ListenerOptions{.http2 = {.streams_max = 2}});
  H2Client client(&f);
  client.Run();
  for (int i = 0; i < 3; ++i) client.Call("Keep", "x");
  client.Run();
  EXPECT_EQ(f.service().kept.size(), 2u);  // The client's library knows the limit and waits.
  f.service().kept[0]->Send({});
  f.service().kept.erase(f.service().kept.begin());
  client.Run();
  EXPECT_EQ(f.service().kept.size(), 2u);
  f.service().kept.clear();
}

// ---- The life of a connection ----------------------------------------------

TEST(Http2Settings, AnIdleConnectionGoesAfterItsTime) {
  EdgeFixture f(ListenerOptions{.http2 = {.idle_max = absl::Seconds(10)}});
  H2Client client(&f);
  client.Run();
  f.Advance(absl::Seconds(9));
  client.Run();
  EXPECT_EQ(client.goaways(), 0);
  f.Advance(absl::Seconds(3));
  client.Run();
  EXPECT_GT(client.goaways(), 0);
  EXPECT_TRUE(client.closed());
}

TEST(Http2Settings, AnOldConnectionFinishesItsCalls) {
  EdgeFixture f(ListenerOptions{.http2 = {.age_max = absl::Seconds(100)}});
  H2Client client(&f);
  const int32_t stream = client.Call("Keep", "x");
  client.Run();
  f.Advance(absl::Seconds(89));
  client.Run();
  EXPECT_EQ(client.goaways(), 0);
  f.Advance(absl::Seconds(23));
  client.Run();
  EXPECT_EQ(client.goaways(), 2);
  EXPECT_FALSE(client.closed());
  f.service().kept[0]->Send({.trailers = {{"grpc-status", "0"}}});
  client.Run();
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "0");
  EXPECT_TRUE(client.closed());
  f.service().kept.clear();
}

TEST(Http2Settings, TheGraceOfAnOldConnectionEnds) {
  EdgeFixture f(
      ListenerOptions{.http2 = {.age_max = absl::Seconds(10), .age_grace = absl::Seconds(5)}});
  H2Client client(&f);
  client.Call("Hang", "x");
  client.Run();
  f.Advance(absl::Seconds(13));
  client.Run();
  EXPECT_FALSE(client.closed());
  f.Advance(absl::Seconds(7));
  client.Run();
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(f.service().counts().cancelled, 1u);
}

TEST(Http2Settings, AClientThatAnswersPingsStays) {
  EdgeFixture f(ListenerOptions{.http2 = {.keepalive_every = absl::Seconds(5),
                                          .keepalive_wait = absl::Seconds(2),
                                          .keepalive_without_calls = true}});
  H2Client client(&f);
  client.Run();
  for (int i = 0; i < 20; ++i) {
    f.Advance(absl::Seconds(1));
    client.Run();
  }
  EXPECT_FALSE(client.closed());
  EXPECT_EQ(client.goaways(), 0);
}

TEST(Http2Settings, AClientThatDoesNotAnswerIsClosed) {
  EdgeFixture f(ListenerOptions{
      .http2 = {.keepalive_every = absl::Seconds(5), .keepalive_wait = absl::Seconds(2)}});
  H2Client calls(&f);
  H2Client idle(&f);
  calls.Call("Hang", "x");
  calls.Run();
  idle.Run();
  f.Advance(absl::Seconds(12));
  EXPECT_EQ(f.service().counts().cancelled, 1u);
  EXPECT_EQ(f.listener()->connections(), 1u);  // Without calls, nobody is asked.
}

}  // namespace
}  // namespace tensord::front
