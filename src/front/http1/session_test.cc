// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/http1/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "front/call.h"
#include "front/testing/edge_fixture.h"
#include "front/testing/gzip.h"

namespace tensord::front {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Post(std::string_view target, std::string_view body, std::string_view fields = "") {
  return base::Cat("POST ", target, " HTTP/1.1\r\nHost: a\r\n", fields,
                   "Content-Length: ", body.size(), "\r\n\r\n", body);
}

int CountOf(std::string_view text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Http1, AnswersARequestAndKeepsTheConnection) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string first = f.Talk(&client, Post("/v1/models/m:predict", "hello"));
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(first, HasSubstr("content-length: 39\r\n"));
  EXPECT_THAT(first, EndsWith("\r\n\r\nPOST /v1/models/m:predict 5 false\nhello"));
  EXPECT_THAT(f.Talk(&client, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"), EndsWith("GET /x 0 false\n"));
  EXPECT_FALSE(client.closed());
}

TEST(Http1, ARequestMayArriveByteByByte) {
  EdgeFixture f;
  RawClient client = f.Connect();
  std::string answer;
  for (const char c : Post("/slow", "body")) answer += f.Talk(&client, std::string(1, c));
  EXPECT_THAT(answer, EndsWith("POST /slow 4 false\nbody"));
}

TEST(Http1, AGetMayHaveABody) {
  EdgeFixture f;
  RawClient client = f.Connect();
  EXPECT_THAT(f.Talk(&client, "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"),
              EndsWith("GET /x 3 false\nabc"));
}

TEST(Http1, PipelinedRequestsAreAnsweredInOrder) {
  EdgeFixture f;
  RawClient client = f.Connect();
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += Post(base::Cat("/", i), base::Cat("body", i));
  const std::string answers = f.Talk(&client, requests);
  size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    const size_t found = answers.find(base::Cat("POST /", i, " "), at);
    ASSERT_NE(found, std::string::npos) << i;
    at = found;
  }
  EXPECT_EQ(CountOf(answers, "HTTP/1.1 200"), 100);
}

TEST(Http1, ALargeBodyArrivesWhole) {
  EdgeFixture f;
  RawClient client = f.Connect();
  std::string body(5'000'000, 'a');
  for (size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>('b' + i % 20);
  const std::string answer = f.Talk(&client, Post("/large", body));
  EXPECT_TRUE(answer.ends_with(base::Cat("POST /large 5000000 false\n", body)));
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http1, ChunksAreJoinedAndTrailersDropped) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string answer =
      f.Talk(&client,
             "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
             "3\r\nabc\r\n0A;name=value\r\n0123456789\r\n0\r\nContent-Length: 7\r\n\r\n"
             "GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("POST /c 13 false\nabc0123456789"));
  EXPECT_THAT(answer, EndsWith("GET /next 0 false\n"));
}

TEST(Http1, HeadGetsTheLengthButNoBody) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string answer = f.Talk(&client, "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("content-length: 16\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(Http1, OldClientsAreClosedUnlessTheyAskToStay) {
  EdgeFixture f;
  RawClient closes = f.Connect();
  EXPECT_THAT(f.Talk(&closes, "GET /x HTTP/1.0\r\n\r\n"), HasSubstr("connection: close\r\n"));
  EXPECT_TRUE(closes.closed());
  RawClient stays = f.Connect();
  EXPECT_THAT(f.Talk(&stays, "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
              HasSubstr("connection: keep-alive\r\n"));
  EXPECT_FALSE(stays.closed());
}

TEST(Http1, AClientThatAsksFirstIsToldToContinue) {
  EdgeFixture f;
  RawClient client = f.Connect();
  EXPECT_EQ(f.Talk(&client,
                   "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
                   "Expect: 100-continue\r\n\r\n"),
            "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_THAT(f.Talk(&client, "ab"), EndsWith("POST /x 2 false\nab"));
}

TEST(Http1, ABodyOverTheLimitIsRefusedBeforeItComes) {
  EdgeFixture f(ListenerOptions{.body_bytes_max = 1000});
  RawClient client = f.Connect();
  const std::string answer = f.Talk(&client,
                                    "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n"
                                    "Expect: 100-continue\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, HasSubstr("1001 bytes; the limit is 1000"));
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(f.service().counts().heads, 0u);
  EXPECT_EQ(f.service().counts().refused, 1u);
}

TEST(Http1, AChunkedBodyOverTheLimitIsRefused) {
  EdgeFixture f(ListenerOptions{.body_bytes_max = 1000});
  RawClient client = f.Connect();
  EXPECT_THAT(f.Talk(&client, base::Cat("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                        "chunked\r\n\r\n3e9\r\n",
                                        std::string(1001, 'x'), "\r\n0\r\n\r\n")),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_TRUE(client.closed());
}

TEST(Http1, AnAnnouncedLengthCostsLittle) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000000\r\n\r\nabc");
  EXPECT_GT(f.budget().used(), 0u);
  EXPECT_LE(f.budget().used(), 2 * limits::kReadAheadBytes);
  client.Close();
  f.Pump();
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http1, WithoutMemoryARequestIsRefusedAndTheOthersGoOn) {
  EdgeFixture f({}, /*budget_bytes=*/100'000);
  RawClient client = f.Connect();
  const std::string answer = f.Talk(&client, Post("/x", std::string(200'000, 'x')));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 429 "));
  RawClient other = f.Connect();
  EXPECT_THAT(f.Talk(&other, Post("/x", "small")), EndsWith("small"));
}

TEST(Http1, AnEarlyAnswerLeavesTheConnectionUsable) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string answers =
      f.Talk(&client, Post("/early", std::string(1000, 'x')) + Post("/next", "y"));
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(answers, EndsWith("POST /next 1 false\ny"));
}

TEST(Http1, AnEarlyAnswerToALargeBodyCloses) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string answer =
      f.Talk(&client, "POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc");
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
  EXPECT_TRUE(client.closed());
}

TEST(Http1, GzipIsUndone) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string text(3'000'000, 'z');
  const std::string answer = f.Talk(&client, Post("/z", Gzip(text), "Content-Encoding: gzip\r\n"));
  EXPECT_TRUE(answer.ends_with(base::Cat("POST /z 3000000 false\n", text)));
}

TEST(Http1, DeflateIsUndone) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string text(3'000'000, 'z');
  EXPECT_TRUE(f.Talk(&client, Post("/z", Zlib(text), "Content-Encoding: deflate\r\n"))
                  .ends_with(base::Cat("POST /z 3000000 false\n", text)));
  RawClient other = f.Connect();
  EXPECT_THAT(f.Talk(&other, Post("/z", "no deflate", "Content-Encoding: deflate\r\n")),
              EndsWith("POST /z 0 true\n"));
}

TEST(Http1, WhatIsNotGzipArrivesEmptyAndMarked) {
  EdgeFixture f;
  const std::string good = Gzip("some text that is long enough to be cut");
  std::string wrong_sum = good;
  wrong_sum[good.size() - 6] ^= 1;
  for (const std::string& body :
       {std::string("no gzip"), good.substr(0, good.size() - 3), wrong_sum, good + "junk"}) {
    RawClient client = f.Connect();
    EXPECT_THAT(f.Talk(&client, Post("/z", body, "Content-Encoding: x-gzip\r\n")),
                EndsWith("POST /z 0 true\n"));
  }
}

TEST(Http1, MembersInARowAreOneGzipBody) {
  EdgeFixture f;
  RawClient client = f.Connect();
  EXPECT_THAT(f.Talk(&client, Post("/z", Gzip("one,") + Gzip("two"), "Content-Encoding: gzip\r\n")),
              EndsWith("POST /z 7 false\none,two"));
}

TEST(Http1, AGzipBombIsRefusedAtItsLimit) {
  EdgeFixture f(ListenerOptions{.inflated_bytes_max = 1'000'000});
  RawClient client = f.Connect();
  const std::string bomb = Gzip(std::string(50'000'000, '\0'));
  const std::string answer = f.Talk(&client, Post("/z", bomb, "Content-Encoding: gzip\r\n"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http1, AHalfClosedClientIsStillAnswered) {
  EdgeFixture f;
  RawClient client = f.Connect();
  client.Send(Post("/x", "abc"));
  client.ShutdownWrite();
  EXPECT_THAT(f.Talk(&client, ""), EndsWith("POST /x 3 false\nabc"));
  EXPECT_TRUE(client.closed());
}

TEST(Http1, AClientThatLeavesCancelsItsRequestOnce) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "GET /hang HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(f.listener()->open_calls(), 1u);
  client.Close();
  f.Pump();
  EXPECT_EQ(f.service().counts().cancelled, 1u);
  EXPECT_EQ(f.listener()->connections(), 0u);
}

TEST(Http1, ASlowHeadIsAnswered408) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "GET /x HTTP/1.1\r\nHost:");
  f.Advance(limits::kHeaderWaitMax - absl::Seconds(2));
  EXPECT_EQ(client.Receive(), "");
  f.Advance(absl::Seconds(4));
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(client.closed());
}

TEST(Http1, AHeadThatDripsIsNotGivenMoreTime) {
  EdgeFixture f;
  RawClient client = f.Connect();
  client.Send("GET /x HTTP/1.1\r\n");
  for (int i = 0; i < 31; ++i) {
    client.Send("a: b\r\n");
    f.Advance(absl::Seconds(1));
  }
  f.Advance(absl::Seconds(1));
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 408 "));
}

TEST(Http1, ABodyThatStopsComingIsAnswered408) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  f.Advance(limits::kBodyStallMax + absl::Seconds(2));
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 408 "));
}

TEST(Http1, AnIdleConnectionIsClosedInTheEnd) {
  EdgeFixture f;
  RawClient client = f.Connect();
  f.Talk(&client, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  f.Advance(limits::kIdleConnectionMax - absl::Seconds(2));
  client.Receive();
  EXPECT_FALSE(client.closed());
  f.Advance(absl::Seconds(4));
  client.Receive();
  EXPECT_TRUE(client.closed());
}

TEST(Http1, AClientThatDoesNotReadIsCut) {
  EdgeFixture f;
  RawClient client = f.Connect();
  client.Send("GET /big/50000000 HTTP/1.1\r\nHost: a\r\n\r\n");
  f.Pump();
  EXPECT_GE(f.budget().used(), 50'000'000u);
  f.Advance(limits::kWriteStallMax + absl::Seconds(2));
  EXPECT_EQ(f.listener()->connections(), 0u);
  EXPECT_EQ(f.budget().used(), 0u);
}

TEST(Http1, ASlowReaderGetsALargeAnswerWhole) {
  EdgeFixture f;
  RawClient client = f.Connect();
  const std::string answer = f.Talk(&client, "GET /big/20000000 HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(answer.ends_with(std::string(20'000'000, 'x')));
  EXPECT_EQ(f.budget().used(), 0u);
}

struct BadCase {
  std::string_view name;
  std::string text;
  int status;
};

TEST(Http1, WhatCouldBeReadInTwoWaysIsRefused) {
  const std::string host = "Host: a\r\n";
  const BadCase cases[] = {
      {"both lengths",
       "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
       400},
      {"both lengths, other order",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
       400},
      {"two equal lengths",
       "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {"two lengths",
       "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400},
      {"a list of lengths", "POST / HTTP/1.1\r\n" + host + "Content-Length: 3, 3\r\n\r\nabc", 400},
      {"a signed length", "POST / HTTP/1.1\r\n" + host + "Content-Length: +3\r\n\r\nabc", 400},
      {"a negative length", "POST / HTTP/1.1\r\n" + host + "Content-Length: -3\r\n\r\nabc", 400},
      {"an empty length", "POST / HTTP/1.1\r\n" + host + "Content-Length:\r\n\r\nabc", 400},
      {"a hex length", "POST / HTTP/1.1\r\n" + host + "Content-Length: 0x3\r\n\r\nabc", 400},
      {"an overflowing length",
       "POST / HTTP/1.1\r\n" + host + "Content-Length: 18446744073709551617\r\n\r\n", 400},
      {"LF alone", "GET / HTTP/1.1\nHost: a\n\n", 400},
      {"LF alone after a field", "GET / HTTP/1.1\r\n" + host + "a: b\n\r\n", 400},
      {"CR in a value", "GET / HTTP/1.1\r\n" + host + "a: b\rc\r\n\r\n", 400},
      {"NUL in a value", "GET / HTTP/1.1\r\n" + host + std::string("a: b\0c\r\n\r\n", 11), 400},
      {"a folded line", "GET / HTTP/1.1\r\n" + host + "a: b\r\n c\r\n\r\n", 400},
      {"space before the colon", "GET / HTTP/1.1\r\n" + host + "a : b\r\n\r\n", 400},
      {"no colon", "GET / HTTP/1.1\r\n" + host + "abc\r\n\r\n", 400},
      {"an empty name", "GET / HTTP/1.1\r\n" + host + ": b\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\n" + host + "Host: b\r\n\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"chunked twice",
       "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, chunked\r\n\r\n", 501},
      {"chunked hidden", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {"two codings fields",
       "POST / HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
       400},
      {"chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"an unknown version", "GET / HTTP/1.2\r\n" + host + "\r\n", 505},
      {"a later version", "GET / HTTP/3.0\r\n" + host + "\r\n", 505},
      {"no target", "GET HTTP/1.1\r\n" + host + "\r\n", 400},
      {"a space in the target", "GET /a b HTTP/1.1\r\n" + host + "\r\n", 400},
      {"an odd method", "G@T / HTTP/1.1\r\n" + host + "\r\n", 400},
      {"an unknown expectation", "GET / HTTP/1.1\r\n" + host + "Expect: tea\r\n\r\n", 417},
      {"a long target", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 414},
      {"a longer target", "GET /" + std::string(90'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n",
       414},
      {"a long header", "GET / HTTP/1.1\r\n" + host + "a: " + std::string(70'000, 'a') + "\r\n\r\n",
       431},
  };
  for (const BadCase& c : cases) {
    EdgeFixture f;
    RawClient client = f.Connect();
    const std::string answer = f.Talk(&client, c.text);
    EXPECT_THAT(answer, StartsWith(base::Cat("HTTP/1.1 ", c.status, " "))) << c.name;
    EXPECT_EQ(CountOf(answer, "date: "), 1) << c.name;
    EXPECT_THAT(answer, HasSubstr("connection: close")) << c.name;
    EXPECT_TRUE(client.closed()) << c.name;
    EXPECT_EQ(f.service().counts().requests, 0u) << c.name;
  }
}

TEST(Http1, TooManyHeadersAreRefused) {
  EdgeFixture f;
  for (const int count : {limits::kHeadersMax - 1, limits::kHeadersMax}) {
    std::string text = "GET /x HTTP/1.1\r\nHost: a\r\n";
    for (int i = 0; i < count; ++i) text += base::Cat("h", i, ": v\r\n");
    RawClient client = f.Connect();
    EXPECT_THAT(f.Talk(&client, text + "\r\n"),
                StartsWith(count < limits::kHeadersMax ? "HTTP/1.1 200" : "HTTP/1.1 431"));
  }
}

TEST(Http1, BadChunksAreRefused) {
  const std::string_view bodies[] = {
      "FFFFFFFFFFFFFFFF\r\nabc",    "11111111111111111\r\n",  "-1\r\n",
      "0x3\r\nabc\r\n0\r\n\r\n",    "3 \r\nabc\r\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n",
      "3\r\nabcd\r\n0\r\n\r\n",     "3\r\nabc0\r\n\r\n",      "\r\n",
      "3;a\nb\r\nabc\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n",    "0\r\n a: b\r\n\r\n",
      "0\r\nab\nc\r\n\r\n"};
  for (const std::string_view body : bodies) {
    EdgeFixture f;
    RawClient client = f.Connect();
    const std::string answer =
        f.Talk(&client,
               base::Cat("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", body));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 ")) << body;
    EXPECT_EQ(f.service().counts().requests, 0u) << body;
  }
}

TEST(Http1, ManyTinyChunksAreAnAttack) {
  EdgeFixture f;
  RawClient client = f.Connect();
  std::string text = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < limits::kChunksFree + 10; ++i) text += "1\r\na\r\n";
  EXPECT_THAT(f.Talk(&client, text), StartsWith("HTTP/1.1 400 "));
}

TEST(Http1, AnAnswerCannotSmuggleAHeader) {
  EdgeFixture f;
  Call call({.loop = &f.loop(), .service = &f.service(), .budget = &f.budget()}, nullptr);
  call.ReplaceAnswer({.headers = {{"a", "b\r\nset-cookie: c"}}});
  EXPECT_THAT(call.answer().headers[0].second, Not(HasSubstr("\n")));
}

TEST(Http1, DrainingClosesWithTheNextAnswerOrWhenQuiet) {
  EdgeFixture f;
  RawClient busy = f.Connect();
  RawClient quiet = f.Connect();
  f.Talk(&busy, Post("/x", "1"));
  f.Talk(&quiet, Post("/x", "1"));
  bool done = false;
  f.listener()->Drain(f.loop().Now() + absl::Seconds(30), [&] { done = true; });
  const std::string answer = f.Talk(&busy, Post("/x", "2"));
  EXPECT_THAT(answer, HasSubstr("connection: close"));
  EXPECT_THAT(answer, EndsWith("POST /x 1 false\n2"));
  EXPECT_TRUE(busy.closed());
  EXPECT_FALSE(quiet.closed());
  f.Advance(absl::Seconds(2));
  quiet.Receive();
  EXPECT_TRUE(quiet.closed());
  busy.Close();
  quiet.Close();
  f.Advance(absl::Seconds(1));
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace tensord::front
