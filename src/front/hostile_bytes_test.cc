// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Conversations that were damaged at random, under the sanitizers: whatever comes, nothing breaks
// and everything is given back. Another seed each time:
//   front_test --gtest_filter='HostileBytes.*' --gtest_shuffle --gtest_repeat=100

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "front/testing/edge_fixture.h"
#include "front/testing/h2_client.h"

namespace tensord::front {
namespace {

constexpr int kConversations = 400;

using Random = std::mt19937;

size_t Pick(Random* random, size_t below) { return (*random)() % std::max<size_t>(below, 1); }

std::string Damage(std::string text, const std::vector<std::string>& pieces, Random* random) {
  for (size_t times = Pick(random, 6); times > 0; --times) {
    const size_t at = Pick(random, text.size());
    const size_t size = Pick(random, 1 + Pick(random, 40));
    switch (Pick(random, 5)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>((*random)());
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, text.substr(Pick(random, text.size()), size));
        break;
      case 3:
        text.insert(at, pieces[Pick(random, pieces.size())]);
        break;
      default:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << Pick(random, 8)));
        break;
    }
  }
  return text;
}

std::vector<std::string> Http1Pieces() {
  return {"GET /x HTTP/1.1\r\nHost: a\r\n\r\n",
          "POST /y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
          "POST /y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
          "5;x=y\r\nhello\r\n0\r\nTrailer: z\r\n\r\n",
          "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n",
          "POST /early HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
          "HEAD /big/100000 HTTP/1.1\r\nHost: a\r\n\r\n",
          "GET /big/100000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
          "POST /z HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n",
          std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", 20),
          "\r\n",
          std::string(70'000, 'a')};
}

std::string Literal(std::string_view name, std::string_view value) {
  return base::Cat(std::string(1, '\0'), std::string(1, static_cast<char>(name.size())), name,
                   std::string(1, static_cast<char>(value.size())), value);
}

// Frames of one stream that may follow its headers.
std::vector<std::string> Http2Pieces(uint32_t stream) {
  return {RawFrame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, GrpcFrame("70000")),
          RawFrame(NGHTTP2_DATA, 0, stream, GrpcFrame("abc", 1)),
          RawFrame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, ""),
          RawFrame(NGHTTP2_RST_STREAM, 0, stream, std::string(4, '\7')),
          RawFrame(NGHTTP2_WINDOW_UPDATE, 0, stream, std::string("\0\0\1\0", 4)),
          RawFrame(NGHTTP2_PRIORITY, 0, stream, std::string(5, '\1')),
          RawFrame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\4\0\0\0\0", 6)),
          RawFrame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, ""),
          RawFrame(NGHTTP2_PING, 0, 0, std::string(8, '\0')),
          RawFrame(0xfe, 1, stream, "unknown")};
}

std::string Http2Headers(uint32_t stream, Random* random) {
  constexpr std::string_view kPaths[] = {"/echo.Echo/Call", "/echo.Echo/Hang", "/echo.Echo/Big"};
  const std::string block =
      base::Cat(Literal(":method", "POST"), Literal(":scheme", "http"), Literal(":authority", "a"),
                Literal(":path", kPaths[Pick(random, std::size(kPaths))]),
                Literal("content-type", Pick(random, 3) > 0 ? "application/grpc" : "text/plain"),
                Literal("grpc-encoding", "gzip"), Literal("grpc-timeout", "5S"));
  return RawFrame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, block);
}

std::string Http1Conversation(Random* random) {
  const std::vector<std::string> pieces = Http1Pieces();
  std::string text;
  for (size_t n = 1 + Pick(random, 12); n > 0; --n) text += pieces[Pick(random, pieces.size())];
  return text;
}

std::string Http2Conversation(Random* random) {
  std::string text =
      base::Cat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", RawFrame(NGHTTP2_SETTINGS, 0, 0, ""));
  for (uint32_t stream = 1; stream < 2 + Pick(random, 20); stream += 2) {
    const std::vector<std::string> pieces = Http2Pieces(stream);
    text += Http2Headers(stream, random);
    for (size_t n = Pick(random, 4); n > 0; --n) text += pieces[Pick(random, pieces.size())];
  }
  return text;
}

void Converse(std::string (*compose)(Random*), const std::vector<std::string>& pieces) {
  Random random(static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed() + 1));
  EdgeFixture f(ListenerOptions{.connections_max = 8, .body_bytes_max = 100'000}, 1 << 20);
  std::vector<RawClient> clients;
  for (int i = 0; i < kConversations; ++i) {
    const std::string text = Damage(compose(&random), pieces, &random);
    RawClient client = f.Connect();
    for (std::string_view left = text; !left.empty() && !client.broken();) {
      const size_t size = std::min(left.size(), 1 + Pick(&random, 3000));
      client.Send(left.substr(0, size));
      left.remove_prefix(size);
      f.loop().RunOnce(absl::InfinitePast());
    }
    if (Pick(&random, 2) == 0) client.ShutdownWrite();
    if (Pick(&random, 4) == 0) f.Advance(absl::Seconds(Pick(&random, 80)));
    f.Pump();
    client.Receive();
    if (Pick(&random, 3) == 0) clients.push_back(std::move(client));
    if (clients.size() > 5) clients.clear();
  }
  clients.clear();
  f.Advance(absl::Seconds(5));
  EXPECT_EQ(f.listener()->connections(), 0u);
  EXPECT_EQ(f.listener()->open_calls(), 0u);
  EXPECT_GT(f.service().counts().requests, kConversations / 20) << "damaged beyond any sense";
  EXPECT_GT(f.service().counts().cancelled, 0u);
  EXPECT_EQ(f.budget().used(), 0u);
  RawClient well = f.Connect();
  EXPECT_TRUE(f.Talk(&well, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST(HostileBytes, Http1SurvivesThem) { Converse(Http1Conversation, Http1Pieces()); }

TEST(HostileBytes, Http2SurvivesThem) { Converse(Http2Conversation, Http2Pieces(3)); }

}  // namespace
}  // namespace tensord::front
