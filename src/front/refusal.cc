// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/refusal.h"

#include "base/text.h"
#include "front/grpc.h"

namespace tensord::front {
namespace {

// Answers that are written free memory in milliseconds, bodies that arrive in seconds.
constexpr absl::Duration kMemoryRetryAfter = absl::Seconds(1);

// Our refusals are plain words with numbers; what a client put in them is made harmless.
std::string Quotable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e || c == '"' || c == '\\') c = '?';
  }
  return out;
}

}  // namespace

Refusal OutOfMemoryRefusal() {
  return {.http_status = 429,
          .code = absl::StatusCode::kResourceExhausted,
          .why = "the server's memory for requests and answers is used up; try again later",
          .retry_after = kMemoryRetryAfter};
}

Answer RefusalAnswer(const RequestHead& head, const Refusal& refusal) {
  const bool hint = refusal.retry_after > absl::ZeroDuration();
  if (IsGrpc(head)) {
    std::vector<Header> trailers;
    if (hint) trailers.push_back(GrpcPushback(refusal.retry_after));
    return MakeGrpcAnswer(absl::Status(refusal.code, refusal.why), {}, std::move(trailers));
  }
  Answer answer{.status = refusal.http_status, .code = refusal.code};
  answer.headers.emplace_back("content-type", "application/json");
  if (hint) {
    answer.headers.emplace_back(
        "retry-after",
        base::Cat(absl::ToInt64Seconds(absl::Ceil(refusal.retry_after, absl::Seconds(1)))));
  }
  answer.body = base::Cat("{\n    \"error\": \"", Quotable(refusal.why), "\"\n}");
  return answer;
}

}  // namespace tensord::front
