// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "front/exchange.h"

// The answers that handlers give, in each protocol's form. Pure but for Send.
namespace tensord::front {

// One message, or trailers with the error. `retry_after` of zero: no hint.
void ReplyGrpc(Exchange& exchange, const absl::Status& status, std::string message = {},
               absl::Duration retry_after = absl::ZeroDuration());
// The one or the other, the error with the wait that it carries.
void ReplyGrpcResult(Exchange& exchange, absl::StatusOr<std::string> message);

// A JSON document. `cors` adds the headers that let a page of any origin read it.
void ReplyJson(Exchange& exchange, std::string body, bool cors);
// A body in one of the Open Inference Protocol's forms.
struct OipAnswer {
  std::string body;
  std::string_view encoding = {};         // How it is compressed; empty: not at all.
  std::optional<size_t> json_bytes = {};  // Uncompressed; binary tensors follow the JSON text.
};
void ReplyOip(Exchange& exchange, OipAnswer answer, bool cors);
// {"error": "..."} with the HTTP status that belongs to the code.
void ReplyJsonError(Exchange& exchange, const absl::Status& status, bool cors,
                    absl::Duration retry_after = absl::ZeroDuration());
// The same with an HTTP status of its own.
void ReplyJsonError(Exchange& exchange, int http_status, std::string_view message, bool cors);
// The document, or the error with the wait that it carries.
void ReplyJsonResult(Exchange& exchange, absl::StatusOr<std::string> body, bool cors);

// A line of text, for probes and pages.
void ReplyText(Exchange& exchange, int http_status, std::string body);

// The wait that belongs to a refusal: what the catalog attached, else `fallback`.
absl::Duration RetryAfterOf(const absl::Status& status, absl::Duration fallback);

}  // namespace tensord::front
