// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/utf8.h"

#include <cstdint>

namespace tensord::base {
namespace {

uint32_t Byte(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

// Bytes of the code point at the start of `text`; 0 when there is none.
size_t CodePointBytes(std::string_view text) {
  const uint32_t first = Byte(text, 0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (Byte(text, i) >> 6 != 2) return 0;
  }
  const uint32_t second = Byte(text, 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_large = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : bytes;
}

}  // namespace

std::string ToUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = CodePointBytes(text);
    if (bytes == 0) {
      out.push_back('?');
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, bytes));
      text.remove_prefix(bytes);
    }
  }
  return out;
}

}  // namespace tensord::base
