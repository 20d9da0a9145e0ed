// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/grpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/text.h"

namespace tensord::front {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

RequestHead HeadWith(std::vector<HeaderView> headers) {
  RequestHead head{.protocol = Protocol::kHttp2,
                   .method = "POST",
                   .target = "/tensorflow.serving.PredictionService/Predict",
                   .headers = std::move(headers)};
  head.arrived = absl::UnixEpoch();
  return head;
}

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Grpc, IsToldByItsContentType) {
  EXPECT_TRUE(IsGrpc(HeadWith({{"content-type", "application/grpc"}})));
  EXPECT_TRUE(IsGrpc(HeadWith({{"content-type", "application/grpc+proto"}})));
  EXPECT_TRUE(IsGrpc(HeadWith({{"content-type", "application/grpc; charset=x"}})));
  EXPECT_FALSE(IsGrpc(HeadWith({{"content-type", "application/grpc-web"}})));
  EXPECT_FALSE(IsGrpc(HeadWith({{"content-type", "application/json"}})));
  EXPECT_FALSE(IsGrpc(HeadWith({})));
  RequestHead http1 = HeadWith({{"content-type", "application/grpc"}});
  http1.protocol = Protocol::kHttp1;
  EXPECT_FALSE(IsGrpc(http1));
}

TEST(Grpc, APathNamesServiceAndMethod) {
  const RequestHead head = HeadWith({{"grpc-previous-rpc-attempts", "2"}});
  const auto parsed = ParseGrpcHead(head);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->service, "tensorflow.serving.PredictionService");
  EXPECT_EQ(parsed->method, "Predict");
  EXPECT_EQ(parsed->deadline, absl::InfiniteFuture());
  EXPECT_EQ(parsed->previous_attempts, 2);
}

TEST(Grpc, APathWithoutMethodIsUnimplemented) {
  for (const char* path : {"", "/", "/Service", "/Service/", "Service/Method", "//Method"}) {
    RequestHead head = HeadWith({});
    head.target = path;
    EXPECT_EQ(ParseGrpcHead(head).status().code(), absl::StatusCode::kUnimplemented) << path;
  }
}

TEST(Grpc, ATimeoutIsADeadlineFromTheFirstByteOn) {
  const RequestHead head = HeadWith({{"grpc-timeout", "250m"}});
  EXPECT_EQ(ParseGrpcHead(head)->deadline, absl::UnixEpoch() + absl::Milliseconds(250));
}

TEST(Grpc, TimeoutsHaveUpToEightDigitsAndAUnit) {
  EXPECT_EQ(ParseGrpcTimeout("0S"), absl::ZeroDuration());
  EXPECT_EQ(ParseGrpcTimeout("99999999H"), absl::Hours(99999999));
  EXPECT_EQ(ParseGrpcTimeout("3M"), absl::Minutes(3));
  EXPECT_EQ(ParseGrpcTimeout("1u"), absl::Microseconds(1));
  EXPECT_EQ(ParseGrpcTimeout("00000001n"), absl::Nanoseconds(1));
  for (const char* text :
       {"", "S", "1", "1s", "-1S", "+1S", "1.5S", " 1S", "1S ", "123456789S", "1SS", "0x1S"}) {
    EXPECT_EQ(ParseGrpcTimeout(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseGrpcHead(HeadWith({{"grpc-timeout", "10000000000000000000S"}})).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Grpc, OneWholeMessageIsRead) {
  const std::string frame("\0\0\0\0\3abc", 8);
  const auto message = ReadGrpcMessage(Bytes(frame));
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(message->data()), message->size()), "abc");
  EXPECT_TRUE(ReadGrpcMessage(Bytes(std::string_view("\0\0\0\0\0", 5)))->empty());
}

TEST(Grpc, OtherBodiesAreInternalErrors) {
  using std::string_view_literals::operator""sv;  // For the NULs.
  for (const std::string_view body :
       {""sv, "\0"sv, "\0\0\0\0"sv, "\0\0\0\0\1"sv, "\0\0\0\0\1ab"sv, "\1\0\0\0\1a"sv,
        "\2\0\0\0\1a"sv, "\0\xff\xff\xff\xff"sv, "\0\0\0\0\0\0\0\0\0\0"sv}) {
    EXPECT_EQ(ReadGrpcMessage(Bytes(body)).status().code(), absl::StatusCode::kInternal);
  }
}

TEST(Grpc, AMessageThatIsCutShortSaysHowMuchOfItCame) {
  using std::string_view_literals::operator""sv;  // For the NULs.
  const auto words = [](std::string_view body) {
    return std::string(base::Message(ReadGrpcMessage(Bytes(body)).status()));
  };
  EXPECT_EQ(
      words("\0\0\0\0"sv),
      "the message is cut short: 4 of the 5 bytes before it came before the end of the stream");
  EXPECT_EQ(words("\0\0\0\0\4ab"sv),
            "the message is cut short: 2 bytes of 4 came before the end of the stream");
}

TEST(Grpc, AnAnswerIsPrefixMessageAndStatus) {
  const Answer answer = MakeGrpcAnswer(absl::OkStatus(), std::string(258, 'x'));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.prefix, std::string("\0\0\0\1\2", 5));
  EXPECT_EQ(answer.body.size(), 258u);
  EXPECT_FALSE(answer.trailers_only);
  EXPECT_THAT(answer.trailers, ElementsAre(Pair("grpc-status", "0")));
}

TEST(Grpc, AnErrorIsTrailersAlone) {
  const Answer answer = MakeGrpcAnswer(absl::UnavailableError("gr\xc3\xbc\xc3\x9f 5%"), "ignored",
                                       {GrpcPushback(absl::Milliseconds(1500))});
  EXPECT_TRUE(answer.trailers_only);
  EXPECT_EQ(answer.body, "");
  EXPECT_THAT(answer.trailers,
              ElementsAre(Pair("grpc-retry-pushback-ms", "1500"), Pair("grpc-status", "14"),
                          Pair("grpc-message", "gr%C3%BC%C3%9F 5%25")));
}

TEST(Grpc, AMessageIsUtf8WhateverItQuotes) {
  const Answer answer = MakeGrpcAnswer(absl::NotFoundError("model \xff\xc3"));
  EXPECT_THAT(answer.trailers, Contains(Pair("grpc-message", "model ??")));
}

TEST(Grpc, SpacesAtTheEndsOfAMessageAreEncodedBecauseHttp2ForbidsThem) {
  const Answer answer = MakeGrpcAnswer(absl::InternalError(" one of: "));
  EXPECT_THAT(answer.trailers, Contains(Pair("grpc-message", "%20one of:%20")));
}

TEST(Grpc, LongWordsAreCutWhereTheOriginalCutsThem) {
  const auto text_of = [](size_t size) {
    const Answer answer = MakeGrpcAnswer(absl::InternalError(std::string(size, 'x').c_str()));
    return answer.trailers.back().second;
  };
  EXPECT_EQ(text_of(limits::kGrpcMessageBytesMax), std::string(limits::kGrpcMessageBytesMax, 'x'));
  EXPECT_EQ(text_of(limits::kGrpcMessageBytesMax + 1),
            std::string(limits::kGrpcMessageBytesMax, 'x') + "...TRUNCATED");
}

}  // namespace
}  // namespace tensord::front
