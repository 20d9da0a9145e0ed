// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/time/time.h"
#include "front/exchange.h"

namespace tensord::front {

// How an answer is sent besides what is in it.
struct Http1AnswerMode {
  bool http_1_0 = false;
  bool close = false;
  absl::Time date;  // The calendar's.
};

// Status line and headers, the empty line included. Content-Length counts the whole body, which for
// HEAD is not sent; 1xx, 204 and 304 have none.
std::string Http1AnswerHead(const Answer& answer, const Http1AnswerMode& mode);

}  // namespace tensord::front
