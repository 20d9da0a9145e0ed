// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

// What is said to somebody who took the wrong port. Pure.
namespace tensord::bench {

// Why these first bytes are no HTTP/2 connection; empty when they may be one.
inline std::string NotHttp2(std::string_view bytes) {
  if (bytes.starts_with("HTTP/1.")) {
    return "it does not speak HTTP/2 but HTTP/1.1: give the gRPC port, or add --rest";
  }
  if (bytes.starts_with("\x15\x03")) return "it speaks TLS only: give a port without";
  return "";
}

// Why these first bytes are no HTTP/1.1 answer.
inline std::string NotHttp1(std::string_view bytes) {
  if (bytes.starts_with("\x15\x03")) return "it speaks TLS only: give a port without";
  // A SETTINGS or GOAWAY frame: three bytes of size, which are small, and the type.
  if (bytes.size() >= 4 && bytes[0] == 0 && (bytes[3] == 4 || bytes[3] == 7)) {
    return "it does not speak HTTP/1.1 but HTTP/2: give the REST port, or leave out --rest";
  }
  return "it does not answer in HTTP/1.1";
}

}  // namespace tensord::bench
