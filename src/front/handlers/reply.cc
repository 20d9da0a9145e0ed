// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/reply.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text.h"
#include "front/grpc.h"
#include "front/refusal.h"
#include "models/snapshot.h"
#include "wire/json/print.h"
#include "wire/status_map.h"

namespace tensord::front {
namespace {

constexpr std::string_view kJsonType = "application/json";

std::vector<Header> JsonHeaders(bool cors) {
  std::vector<Header> headers;
  headers.emplace_back("content-type", kJsonType);
  if (cors) {
    AppendCorsHeaders(&headers);
  }
  return headers;
}

// The code that is nearest to a status that was chosen without one.
absl::StatusCode CodeOf(int http_status) {
  if (http_status < 400) return absl::StatusCode::kOk;
  if (http_status == 404) return absl::StatusCode::kNotFound;
  if (http_status == 501) return absl::StatusCode::kUnimplemented;
  if (http_status == 503) return absl::StatusCode::kUnavailable;
  return http_status < 500 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal;
}

}  // namespace

void ReplyGrpc(Exchange& exchange, const absl::Status& status, std::string message,
               absl::Duration retry_after) {
  std::vector<Header> extra;
  if (!status.ok() && retry_after > absl::ZeroDuration()) {
    extra.push_back(GrpcPushback(retry_after));
  }
  exchange.Send(MakeGrpcAnswer(status, std::move(message), std::move(extra)));
}

void ReplyGrpcResult(Exchange& exchange, absl::StatusOr<std::string> message) {
  if (message.ok()) return ReplyGrpc(exchange, absl::OkStatus(), *std::move(message));
  ReplyGrpc(exchange, message.status(), {}, RetryAfterOf(message.status(), {}));
}

void ReplyJson(Exchange& exchange, std::string body, bool cors) {
  exchange.Send({.status = 200, .headers = JsonHeaders(cors), .body = std::move(body)});
}

void ReplyOip(Exchange& exchange, OipAnswer answer, bool cors) {
  std::vector<Header> headers = JsonHeaders(cors);
  if (answer.json_bytes.has_value()) {
    headers.front().second = "application/octet-stream";
    headers.emplace_back("inference-header-content-length", base::Cat(*answer.json_bytes));
  }
  if (!answer.encoding.empty()) headers.emplace_back("content-encoding", answer.encoding);
  exchange.Send({.status = 200, .headers = std::move(headers), .body = std::move(answer.body)});
}

void ReplyJsonError(Exchange& exchange, const absl::Status& status, bool cors,
                    absl::Duration retry_after) {
  Answer answer{.status = wire::HttpStatus(status.code()),
                .code = status.code(),
                .headers = JsonHeaders(cors),
                .body = wire::PrintError(base::Message(status))};
  if (status.code() == absl::StatusCode::kUnauthenticated) {
    answer.headers.emplace_back("www-authenticate", "Bearer");
  }
  if (retry_after > absl::ZeroDuration()) {
    // Whole seconds, rounded up: HTTP knows no others.
    const double seconds = std::max(1.0, std::ceil(absl::ToDoubleSeconds(retry_after)));
    answer.headers.emplace_back("retry-after", base::Cat(static_cast<int64_t>(seconds)));
  }
  exchange.Send(std::move(answer));
}

void ReplyJsonError(Exchange& exchange, int http_status, std::string_view message, bool cors) {
  exchange.Send({.status = http_status,
                 .code = CodeOf(http_status),
                 .headers = JsonHeaders(cors),
                 .body = wire::PrintError(message)});
}

void ReplyJsonResult(Exchange& exchange, absl::StatusOr<std::string> body, bool cors) {
  if (body.ok()) return ReplyJson(exchange, *std::move(body), cors);
  ReplyJsonError(exchange, body.status(), cors, RetryAfterOf(body.status(), {}));
}

void ReplyText(Exchange& exchange, int http_status, std::string body) {
  exchange.Send({.status = http_status,
                 .code = CodeOf(http_status),
                 .headers = {{"content-type", "text/plain"}},
                 .body = std::move(body)});
}

absl::Duration RetryAfterOf(const absl::Status& status, absl::Duration fallback) {
  return models::RetryAfter(status).value_or(fallback);
}

}  // namespace tensord::front
