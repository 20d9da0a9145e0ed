// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Two bytes for the pace, then what a client of HTTP/2 sends behind its preface and first SETTINGS,
// or, as the second byte says, all of it.

#include <string>

#include "conversation.h"
#include "front/http2/session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  constexpr unsigned char kWithoutPreface = 128;
  std::string bytes;
  if ((data[1] & kWithoutPreface) == 0) {
    bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    bytes += std::string("\0\0\0\4\0\0\0\0\0", 9);
  }
  bytes.append(reinterpret_cast<const char*>(data) + 2, size - 2);
  tensord::front::Converse(tensord::front::MakeHttp2Session, bytes,
                           tensord::front::Pace::FromBytes(data[0], data[1]));
  return 0;
}
