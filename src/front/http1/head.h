// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "front/call.h"
#include "front/inflater.h"
#include "front/refusal.h"

namespace tensord::front {

// How an HTTP/1.1 request is laid out on its connection.
struct Http1Framing {
  bool chunked = false;
  uint64_t content_length = 0;  // Without chunks.
  bool keep_alive = true;
  bool http_1_0 = false;
  bool expects_continue = false;
  std::optional<Inflater::Format> packed = {};  // How the body is compressed, if it is.
};

// Looks for the end of a request's head in what has arrived.
struct HeadScan {
  enum Kind : uint8_t {
    kIncomplete,
    kComplete,  // `bytes` long, the empty line included.
    kBad,       // A line that ends in LF alone.
  };
  Kind kind = kIncomplete;
  size_t bytes = 0;
};
// `scanned` bytes were looked at by earlier calls.
HeadScan ScanHead(std::string_view text, size_t scanned);

// Parses a complete head into `call`. Strict: what two parsers could read in two ways is refused.
// REQUIRES: ScanHead found it complete.
std::variant<Http1Framing, Refusal> ParseHead(std::string_view text, Call* call);

}  // namespace tensord::front
