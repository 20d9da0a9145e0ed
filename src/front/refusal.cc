// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/refusal.h"

#include "base/ascii.h"
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

// A head that was refused may have none yet.
bool MayBeApi(std::string_view target) {
  return target.empty() || base::StartsWithIgnoringCase(target, "/v1/") ||
         target.starts_with("/v2/");
}

}  // namespace

Refusal OutOfMemoryRefusal() {
  return {.http_status = 429,
          .code = absl::StatusCode::kResourceExhausted,
          .why = "the server's memory for requests and answers is used up; try again later",
          .retry_after = kMemoryRetryAfter};
}

void AppendCorsHeaders(std::vector<Header>* headers) {
  headers->emplace_back("access-control-allow-origin", "*");
  headers->emplace_back("access-control-allow-methods", "POST, GET");
  headers->emplace_back("access-control-allow-headers", "Content-Type");
}

Answer RefusalAnswer(const RequestHead& head, const Refusal& refusal, bool cors) {
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
  if (cors && MayBeApi(head.target)) AppendCorsHeaders(&answer.headers);
  answer.body = base::Cat("{\n    \"error\": \"", Quotable(refusal.why), "\"\n}");
  return answer;
}

}  // namespace tensord::front
