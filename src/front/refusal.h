// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "front/exchange.h"

namespace tensord::front {

// Why a connection itself does not take a request: with an HTTP status and, for gRPC, its code.
struct Refusal {
  int http_status = 400;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::string why = {};             // For the client: what was expected, what came.
  absl::Duration retry_after = {};  // When it may look better; zero: no hint.
};

// The byte budget is used up.
Refusal OutOfMemoryRefusal();

// What lets a web page of another origin read an answer.
void AppendCorsHeaders(std::vector<Header>* headers);

// As a gRPC client expects it, or as the REST API does: {"error": "..."}. `cors`: for web pages of
// any origin, unless the target is known and none of the REST API's.
Answer RefusalAnswer(const RequestHead& head, const Refusal& refusal, bool cors);

}  // namespace tensord::front
