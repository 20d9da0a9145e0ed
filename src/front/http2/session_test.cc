// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/http2/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "front/testing/gzip.h"
#include "front/testing/h2_client.h"

namespace tensord::front {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Get(H2Client* client, int32_t stream, const std::string& name) {
  const auto& headers = client->result(stream).headers;
  const auto at = headers.find(name);
  return at == headers.end() ? "(none)" : at->second;
}

H2Client::Fields Plain(std::string method, std::string path) {
  return {{":method", std::move(method)},
          {":scheme", "http"},
          {":path", std::move(path)},
          {":authority", "test"}};
}

TEST(Http2, AnswersAUnaryCall) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Call("Call", "hello");
  client.Run();
  EXPECT_EQ(client.result(stream).body, GrpcFrame("hello"));
  EXPECT_EQ(Get(&client, stream, ":status"), "200");
  EXPECT_EQ(Get(&client, stream, "content-type"), "application/grpc");
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "0");
  EXPECT_EQ(client.result(stream).header_frames, 2);
  EXPECT_TRUE(client.result(stream).closed);
  EXPECT_EQ(client.result(stream).error_code, 0u);
}

TEST(Http2, AnErrorIsOneFrameOfTrailers) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Call("Fail", "no: 100%\n");
  client.Run();
  EXPECT_EQ(client.result(stream).header_frames, 1);
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "3");
  EXPECT_EQ(Get(&client, stream, "grpc-message"), "no: 100%25%0A");
}

TEST(Http2, PlainRequestsReachTheSameService) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t post = client.Submit(Plain("POST", "/v1/x"), "abc");
  const int32_t head = client.Submit(Plain("HEAD", "/v1/x"), "");
  client.Run();
  EXPECT_EQ(client.result(post).body, "POST /v1/x 3 false\nabc");
  EXPECT_EQ(Get(&client, post, "content-length"), "22");
  EXPECT_EQ(client.result(head).body, "");
  EXPECT_EQ(Get(&client, head, "content-length"), "19");
}

TEST(Http2, LargeMessagesPassBothWays) {
  EdgeFixture f;
  H2Client client(&f);
  std::string message(20'000'000, 'a');
  for (size_t i = 0; i < message.size(); i += 1009) message[i] = static_cast<char>('b' + i % 20);
  const int32_t stream = client.Call("Call", message);
  client.Run();
  EXPECT_TRUE(client.result(stream).body == GrpcFrame(message));
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "0");
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2, ManyCallsAtOnceAreAllAnswered) {
  EdgeFixture f;
  H2Client client(&f);
  client.Run();  // The server's settings allow more than the 100 a client starts with.
  std::vector<int32_t> streams;
  for (int i = 0; i < 1000; ++i) streams.push_back(client.Call("Call", base::Cat("message ", i)));
  client.Run();
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(client.result(streams[i]).body, GrpcFrame(base::Cat("message ", i)));
  }
}

TEST(Http2, AnAnnouncedSizeCostsNothing) {
  EdgeFixture f;
  H2Client client(&f);
  client.Run();
  // Claims 1 GiB, sends little.
  const std::string claim("\0\x40\0\0\0abc", 8);
  client.Submit({{":method", "POST"},
                 {":scheme", "http"},
                 {":path", "/echo.Echo/Call"},
                 {":authority", "test"},
                 {"content-type", "application/grpc"}},
                claim, /*open=*/true);
  client.Run();
  EXPECT_EQ(f.budget().used(), claim.size());
}

TEST(Http2, ABodyThatStopsComingIsRefused) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(Plain("POST", "/x"), "abc", /*open=*/true);
  client.Run();
  f.Advance(limits::kBodyStallMax + absl::Seconds(2));
  client.Run();
  EXPECT_EQ(Get(&client, stream, ":status"), "408");
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2, WithoutMemoryACallIsRefusedAndTheOthersGoOn) {
  EdgeFixture f({}, /*budget_bytes=*/200'000);
  H2Client client(&f);
  const int32_t large = client.Call("Call", std::string(500'000, 'x'));
  const int32_t small = client.Call("Call", "small");
  client.Run();
  EXPECT_EQ(Get(&client, large, "grpc-status"), "8");
  EXPECT_EQ(client.result(small).body, GrpcFrame("small"));
  EXPECT_EQ(f.service().counts().refused, 1u);
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2, AMessageOverTheLimitIsRefusedByItsPrefix) {
  EdgeFixture f(ListenerOptions{.body_bytes_max = 1000});
  H2Client client(&f);
  const int32_t fits = client.Call("Call", std::string(1000, 'x'));
  const int32_t large = client.Call("Call", std::string(1001, 'x'));
  client.Run();
  EXPECT_EQ(Get(&client, fits, "grpc-status"), "0");
  EXPECT_EQ(Get(&client, large, "grpc-status"), "8");
  EXPECT_EQ(Get(&client, large, "grpc-message"),
            "Received message larger than max (1001 vs. 1000)");
}

TEST(Http2, OneCallHasOneWholeMessage) {
  EdgeFixture f;
  H2Client client(&f);
  const H2Client::Fields head = {{":method", "POST"},
                                 {":scheme", "http"},
                                 {":path", "/echo.Echo/Call"},
                                 {":authority", "test"},
                                 {"content-type", "application/grpc+proto"}};
  const int32_t none = client.Submit(head, "");
  const int32_t cut = client.Submit(head, GrpcFrame("abc").substr(0, 7));
  const int32_t prefix = client.Submit(head, "\1");
  const int32_t two = client.Submit(head, GrpcFrame("abc") + GrpcFrame("def"));
  const int32_t lying = client.Submit(head, GrpcFrame("abc", 1));
  client.Run();
  for (const int32_t stream : {none, cut, prefix, two, lying}) {
    EXPECT_EQ(Get(&client, stream, "grpc-status"), "13") << stream;
  }
}

TEST(Http2, CompressedMessagesAreInflated) {
  EdgeFixture f(ListenerOptions{.inflated_bytes_max = 2'000'000});
  H2Client client(&f);
  const H2Client::Fields head = {{":method", "POST"},
                                 {":scheme", "http"},
                                 {":path", "/echo.Echo/Call"},
                                 {":authority", "test"},
                                 {"content-type", "application/grpc"},
                                 {"grpc-encoding", "deflate"}};
  const std::string text(1'500'000, 'z');
  const int32_t good = client.Submit(head, GrpcFrame(Zlib(text), 1));
  const int32_t plain = client.Submit(head, GrpcFrame("plain", 0));
  const int32_t bad = client.Submit(head, GrpcFrame("not zlib", 1));
  const int32_t bomb = client.Submit(head, GrpcFrame(Zlib(std::string(30'000'000, 'z')), 1));
  client.Run();
  EXPECT_TRUE(client.result(good).body == GrpcFrame(text));
  EXPECT_EQ(client.result(plain).body, GrpcFrame("plain"));
  EXPECT_EQ(Get(&client, bad, "grpc-status"), "13");
  EXPECT_EQ(Get(&client, bomb, "grpc-status"), "8");
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2, AnUnknownEncodingIsUnimplementedAndTheKnownOnesAreNamed) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Call("Call", "x", {{"grpc-encoding", "snappy"}});
  client.Run();
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "12");
  EXPECT_EQ(Get(&client, stream, "grpc-accept-encoding"), "identity,deflate,gzip");
}

TEST(Http2, ADeadlineIsKeptWhileTheCallHangs) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Call("Hang", "", {{"grpc-timeout", "5S"}});
  client.Run();
  f.Advance(absl::Seconds(4));
  client.Run();
  EXPECT_FALSE(client.result(stream).closed);
  f.Advance(absl::Seconds(2));
  client.Run();
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "4");
}

TEST(Http2, AResetOrALostConnectionCancelsOnce) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t first = client.Call("Hang", "");
  client.Call("Hang", "");
  client.Run();
  EXPECT_EQ(f.listener()->open_calls(), 2u);
  client.Reset(first);
  client.Run();
  EXPECT_EQ(f.service().counts().cancelled, 1u);
  client.socket().Close();
  f.Pump();
  EXPECT_EQ(f.service().counts().cancelled, 2u);
  EXPECT_EQ(f.listener()->connections(), 0u);
}

TEST(Http2, AnEarlyAnswerTellsTheClientToStopSending) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t stream = client.Submit(Plain("POST", "/early"), "abc", /*open=*/true);
  client.Run();
  EXPECT_EQ(Get(&client, stream, ":status"), "403");
  EXPECT_EQ(client.result(stream).body, "refused at the head\n");
  EXPECT_TRUE(client.result(stream).closed);
  EXPECT_EQ(client.result(stream).error_code, static_cast<uint32_t>(NGHTTP2_NO_ERROR));
  const int32_t next = client.Call("Call", "still here");
  client.Run();
  EXPECT_EQ(client.result(next).body, GrpcFrame("still here"));
}

TEST(Http2, ALargeCallCanBeRefusedByItsBeginning) {
  EdgeFixture f;
  H2Client client(&f);
  const H2Client::Fields head = {{":method", "POST"},
                                 {":scheme", "http"},
                                 {":path", "/test.Echo/Call"},
                                 {":authority", "test"},
                                 {"content-type", "application/grpc"},
                                 {"te", "trailers"}};
  const std::string refused_message = "refuse" + std::string(999'994, 'x');
  const std::string begin = GrpcFrame(refused_message).substr(0, 2000);
  const int32_t refused = client.Submit(head, begin, /*open=*/true);
  client.Run();
  EXPECT_EQ(Get(&client, refused, "grpc-status"), "8");
  EXPECT_EQ(Get(&client, refused, "grpc-message"), "refused by its beginning");
  EXPECT_TRUE(client.result(refused).closed);
  EXPECT_EQ(client.result(refused).error_code, static_cast<uint32_t>(NGHTTP2_NO_ERROR));
  EXPECT_EQ(f.service().counts().begun_bytes, 1'000'000u);
  const int32_t whole = client.Call("Call", refused_message);
  const int32_t served = client.Call("Call", std::string(100'000, 'y'));
  const int32_t small = client.Call("Call", "refuse not: it is here already");
  client.Run();
  EXPECT_EQ(Get(&client, whole, "grpc-status"), "8");
  EXPECT_EQ(Get(&client, served, "grpc-status"), "0");
  EXPECT_EQ(Get(&client, small, "grpc-status"), "0");
  EXPECT_EQ(f.service().counts().requests, 2u);
}

TEST(Http2, ALargeCallsBeginningIsToldWhereFramesCutIt) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t refused = client.Submit({{":method", "POST"},
                                         {":scheme", "http"},
                                         {":path", "/test.Echo/Call"},
                                         {":authority", "test"},
                                         {"content-type", "application/grpc"},
                                         {"te", "trailers"}},
                                        "", /*open=*/true);
  client.Run();
  const std::string begin = GrpcFrame("refuse" + std::string(999'994, 'x')).substr(0, 2000);
  for (const auto& [from, bytes] : {std::pair{0, 3}, {3, 9}, {12, 900}, {912, 1088}}) {
    EXPECT_FALSE(client.result(refused).closed);
    client.SendRaw(RawFrame(NGHTTP2_DATA, 0, static_cast<uint32_t>(refused),
                            std::string_view(begin).substr(from, bytes)));
    client.Run();
  }
  EXPECT_EQ(Get(&client, refused, "grpc-message"), "refused by its beginning");
  EXPECT_EQ(f.service().counts().begun_bytes, 1'000'000u);
}

TEST(Http2, AnswersWaitForTheClientsWindow) {
  EdgeFixture f;
  H2Client client(&f, /*initial_window=*/1000);
  const int32_t stream = client.Call("Big", "5000");
  client.Run();
  EXPECT_THAT(client.result(stream).body, SizeIs(1000));
  nghttp2_session_consume(client.session(), stream, 1000);
  client.Run();
  EXPECT_THAT(client.result(stream).body, SizeIs(2000));
}

TEST(Http2, AClientThatNeverOpensItsWindowLosesItsStreams) {
  EdgeFixture f;
  H2Client client(&f, /*initial_window=*/0);
  const int32_t stream = client.Call("Big", "1000000");
  client.Run();
  EXPECT_GE(f.budget().used(), 1'000'000u);
  f.Advance(limits::kWriteStallMax + absl::Seconds(2));
  client.Run();
  EXPECT_TRUE(client.result(stream).closed);
  EXPECT_EQ(client.result(stream).error_code, static_cast<uint32_t>(NGHTTP2_CANCEL));
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http2, UnreadAnswersOfOneConnectionAreBounded) {
  EdgeFixture f;
  H2Client client(&f, /*initial_window=*/0);
  std::vector<int32_t> streams;
  for (int i = 0; i < 20; ++i) streams.push_back(client.Call("Big", "10000000"));
  client.Run();
  EXPECT_LE(f.budget().used(), limits::kAnswerBytesPerConnectionMax);
  EXPECT_EQ(Get(&client, streams.back(), "grpc-status"), "8");
}

TEST(Http2, TooManyHeadersAreRefusedAndTheConnectionLives) {
  EdgeFixture f;
  H2Client client(&f);
  H2Client::Fields many;
  for (int i = 0; i < limits::kHeadersMax; ++i) many.emplace_back(base::Cat("h", i), "v");
  const int32_t crowded = client.Call("Call", "x", many);
  H2Client::Fields path = Plain("GET", "/" + std::string(10'000, 'a'));
  const int32_t long_path = client.Submit(path, "");
  const int32_t good = client.Call("Call", "x");
  client.Run();
  EXPECT_EQ(Get(&client, crowded, "grpc-status"), "8");
  EXPECT_EQ(Get(&client, long_path, ":status"), "414");
  EXPECT_EQ(Get(&client, good, "grpc-status"), "0");
}

TEST(Http2, RapidResetIsCut) {
  EdgeFixture f;
  H2Client client(&f);
  client.Run();
  for (int i = 0; i < 5000 && !client.closed(); ++i) {
    const int32_t stream = client.Call("Hang", "");
    const uint8_t* data = nullptr;
    for (ssize_t n; (n = nghttp2_session_mem_send(client.session(), &data)) > 0;) {
      client.SendRaw({reinterpret_cast<const char*>(data), static_cast<size_t>(n)});
    }
    client.SendRaw(RawFrame(NGHTTP2_RST_STREAM, 0, static_cast<uint32_t>(stream),
                            std::string("\0\0\0\x08", 4)));
    if (i % 100 == 99) client.Run();
  }
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(client.goaway_error(), static_cast<uint32_t>(NGHTTP2_ENHANCE_YOUR_CALM));
  EXPECT_LE(f.service().counts().heads, limits::kResetsBurst + 200);
  EXPECT_EQ(f.service().counts().cancelled, f.service().counts().requests);
}

TEST(Http2, CancellingSomeCallsIsNoAttack) {
  EdgeFixture f;
  H2Client client(&f);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 90; ++i) client.Reset(client.Call("Hang", ""));
    client.Run();
    f.Advance(absl::Seconds(1));
  }
  const int32_t stream = client.Call("Call", "x");
  client.Run();
  EXPECT_EQ(Get(&client, stream, "grpc-status"), "0");
}

TEST(Http2, FloodsOfFramesThatAskForNothingAreCut) {
  const std::pair<std::string_view, std::string> floods[] = {
      {"ping", RawFrame(NGHTTP2_PING, 0, 0, std::string(8, '\0'))},
      {"settings", RawFrame(NGHTTP2_SETTINGS, 0, 0, "")},
      {"priority", RawFrame(NGHTTP2_PRIORITY, 0, 7, std::string(5, '\0'))},
      {"unknown", RawFrame(0xbe, 0, 0, "")},
      {"empty data", RawFrame(NGHTTP2_DATA, 0, 1, "")},
      {"padding", RawFrame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, std::string("\3\0\0\0", 4))},
  };
  for (const auto& [name, frame] : floods) {
    EdgeFixture f;
    H2Client client(&f);
    client.Submit(Plain("POST", "/x"), "a", /*open=*/true);
    client.Run();
    for (int i = 0; i < 2000; ++i) client.SendRaw(frame);
    client.Run();
    EXPECT_TRUE(client.closed()) << name;
    EXPECT_EQ(f.listener()->connections(), 0u) << name;
  }
}

TEST(Http2, AFloodOfWindowUpdatesIsCut) {
  EdgeFixture f;
  H2Client client(&f);
  client.Run();
  const std::string frame = RawFrame(NGHTTP2_WINDOW_UPDATE, 0, 0, std::string("\0\0\0\1", 4));
  for (int i = 0; i < limits::kWindowUpdatesBurst + 100; ++i) client.SendRaw(frame);
  client.Run();
  EXPECT_TRUE(client.closed());
}

TEST(Http2, MakingTheServerResetIsCountedToo) {
  EdgeFixture f;
  H2Client client(&f);
  client.Run();
  // A window increment of zero is an error of the stream, which the server then resets.
  for (int i = 0; i < 3000 && !client.closed(); ++i) {
    const int32_t stream = client.Call("Hang", "");
    const uint8_t* data = nullptr;
    for (ssize_t n; (n = nghttp2_session_mem_send(client.session(), &data)) > 0;) {
      client.SendRaw({reinterpret_cast<const char*>(data), static_cast<size_t>(n)});
    }
    client.SendRaw(
        RawFrame(NGHTTP2_WINDOW_UPDATE, 0, static_cast<uint32_t>(stream), std::string(4, '\0')));
    if (i % 100 == 99) client.Run();
  }
  EXPECT_TRUE(client.closed());
  EXPECT_LE(f.service().counts().heads, limits::kResetsBurst + 200);
}

TEST(Http2, ContinuationsWithoutEndAreCut) {
  EdgeFixture f;
  H2Client client(&f);
  client.Run();
  client.SendRaw(RawFrame(NGHTTP2_HEADERS, 0, 1, "\x82"));
  for (int i = 0; i < 100; ++i) client.SendRaw(RawFrame(NGHTTP2_CONTINUATION, 0, 1, ""));
  client.Run();
  EXPECT_TRUE(client.closed());
}

TEST(Http2, AHeaderBlockThatNeverEndsIsCut) {
  EdgeFixture f;
  H2Client client(&f);
  client.Run();
  client.SendRaw(RawFrame(NGHTTP2_HEADERS, 0, 1, "\x82"));
  client.Run();
  f.Advance(limits::kHeaderWaitMax + absl::Seconds(2));
  EXPECT_EQ(f.listener()->connections(), 0u);
}

TEST(Http2, DrainingFinishesWhatIsOpenAndNamesTheLastRequest) {
  EdgeFixture f;
  H2Client client(&f);
  const int32_t open = client.Call("Hang", "", {{"grpc-timeout", "3S"}});
  client.Run();
  bool done = false;
  f.listener()->Drain(f.loop().Now() + absl::Seconds(30), [&] { done = true; });
  client.Run();
  EXPECT_EQ(client.goaways(), 2);
  EXPECT_EQ(client.goaway_last(), open);
  EXPECT_EQ(client.goaway_error(), 0u);
  EXPECT_FALSE(client.closed());
  f.Advance(absl::Seconds(4));
  client.Run();
  EXPECT_EQ(Get(&client, open, "grpc-status"), "4");
  EXPECT_TRUE(client.closed());
  client.socket().Close();
  f.Advance(absl::Seconds(1));
  EXPECT_TRUE(done);
}

TEST(Http2, WhatIsLeftAtTheEndOfADrainIsCut) {
  EdgeFixture f;
  H2Client client(&f);
  client.Call("Hang", "");
  client.Run();
  bool done = false;
  f.listener()->Drain(f.loop().Now() + absl::Seconds(5), [&] { done = true; });
  f.Advance(absl::Seconds(4));
  EXPECT_FALSE(done);
  f.Advance(absl::Seconds(2));
  EXPECT_TRUE(done);
  EXPECT_EQ(f.service().counts().cancelled, 1u);
}

// As many as may be open, all cancelled, but the service keeps them.
constexpr int kFewStreams = 400;
void KeepAndCancelAll(EdgeFixture* f, H2Client* client) {
  std::vector<int32_t> streams;
  for (int i = 0; i < kFewStreams; ++i) streams.push_back(client->Call("Keep", ""));
  client->Run();
  for (const int32_t stream : streams) client->Reset(stream);
  client->Run();
  EXPECT_EQ(f->listener()->open_calls(), 0u);
}

TEST(Http2, CancelledCallsTakeNoPlaceFromOthersUntilTheServiceHoldsTooMany) {
  EdgeFixture f(ListenerOptions{.http2 = {.streams_max = kFewStreams}});
  H2Client client(&f);
  client.Run();
  KeepAndCancelAll(&f, &client);
  const int32_t beside = client.Call("Call", "x");
  client.Run();
  EXPECT_EQ(Get(&client, beside, "grpc-status"), "0");
  f.Advance(absl::Seconds(5));  // So many resets at once would end the connection.
  KeepAndCancelAll(&f, &client);
  const int32_t refused = client.Call("Call", "x");
  client.Run();
  EXPECT_EQ(client.result(refused).error_code, static_cast<uint32_t>(NGHTTP2_REFUSED_STREAM));
  f.Advance(absl::Seconds(5));
  f.service().kept.clear();
  const int32_t served = client.Call("Call", "x");
  client.Run();
  EXPECT_EQ(Get(&client, served, "grpc-status"), "0");
}

}  // namespace
}  // namespace tensord::front
