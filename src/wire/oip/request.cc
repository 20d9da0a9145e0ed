// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/request.h"

#include <charconv>

#include "base/text.h"

namespace tensord::wire {

absl::StatusOr<std::optional<int64_t>> ParseOipVersion(std::string_view text) {
  if (text.empty()) return std::nullopt;
  int64_t version = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, version);
  if (result.ec != std::errc() || result.ptr != end || version < 0) {
    constexpr size_t kShown = 64;
    return absl::InvalidArgumentError(
        base::Cat("the model version \"", text.substr(0, kShown),
                  "\" is not a number; leave it out for the newest version"));
  }
  return std::optional<int64_t>(version);
}

}  // namespace tensord::wire
