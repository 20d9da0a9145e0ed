// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/percent.h"

#include "base/ascii.h"

namespace tensord::wire {

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool encoded = text[i] == '%' && i + 2 < text.size() &&
                         base::HexDigit(text[i + 1]) >= 0 && base::HexDigit(text[i + 2]) >= 0;
    if (!encoded) {
      out.push_back(text[i]);
      continue;
    }
    out.push_back(
        static_cast<char>(base::HexDigit(text[i + 1]) * 16 + base::HexDigit(text[i + 2])));
    i += 2;
  }
  return out;
}

}  // namespace tensord::wire
