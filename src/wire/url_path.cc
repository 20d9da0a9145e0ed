// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/url_path.h"

#include <algorithm>

#include "base/ascii.h"

namespace tensord::wire {

std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    path.remove_prefix(1);  // The slash.
    const size_t slash = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, slash));
    path.remove_prefix(slash);
  }
  return segments;
}

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
