// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/refusal.h"

#include "base/text.h"
#include "front/grpc.h"

namespace tensord::front {
namespace {

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
          .why = "the server's memory for requests and answers is used up; try again later"};
}

Answer RefusalAnswer(const RequestHead& head, const Refusal& refusal) {
  if (IsGrpc(head)) return MakeGrpcAnswer(absl::Status(refusal.code, refusal.why));
  Answer answer{.status = refusal.http_status, .code = refusal.code};
  answer.headers.emplace_back("content-type", "application/json");
  answer.body = base::Cat("{\n    \"error\": \"", Quotable(refusal.why), "\"\n}");
  return answer;
}

}  // namespace tensord::front
