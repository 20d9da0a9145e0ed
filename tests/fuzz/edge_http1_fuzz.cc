// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Two bytes for the pace, then what a client of HTTP/1.1 sends. However it is cut into pieces, the
// same requests must be understood: where one ends and the next begins is what smuggling is about.

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "conversation.h"
#include "front/http1/session.h"

namespace {

// A client that waits for "100 Continue" is answered by whether its body is there already.
bool DependsOnTime(std::string_view bytes) {
  constexpr std::string_view kWord = "expect";
  return std::search(bytes.begin(), bytes.end(), kWord.begin(), kWord.end(),
                     [](char a, char b) { return (a | 0x20) == b; }) != bytes.end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tensord::front::Converse;
  using tensord::front::MakeHttp1Session;
  if (size < 2) return 0;
  const tensord::front::Pace pace = tensord::front::Pace::FromBytes(data[0], data[1]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto heard = Converse(MakeHttp1Session, bytes, pace);
  if (pace.piece == 0 || pace.drains || pace.waits || DependsOnTime(bytes)) return 0;
  const auto whole = Converse(MakeHttp1Session, bytes, {.ends = pace.ends});
  TENSORD_CHECK(heard.requests == whole.requests);
  return 0;
}
