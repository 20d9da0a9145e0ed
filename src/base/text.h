// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// Joining text. The distribution's Abseil has a string_view of its own, which std::string_view does
// not convert to, so absl::StrCat does not take ours.
namespace tensord::base {

inline void AppendPiece(std::string* out, std::string_view piece) { out->append(piece); }
inline void AppendPiece(std::string* out, char piece) { out->push_back(piece); }
template <typename Number>
requires(std::integral<Number> || std::floating_point<Number>) &&
    (!std::same_as<Number, char>)void AppendPiece(std::string* out, Number piece) {
  if constexpr (std::same_as<Number, bool>) {
    out->append(piece ? "true" : "false");
  } else {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), piece);
    out->append(digits, end.ptr);
  }
}

// Cat("dim ", 3, " of ", name): text, numbers, booleans.
template <typename... Pieces>
std::string Cat(const Pieces&... pieces) {
  std::string out;
  (AppendPiece(&out, pieces), ...);
  return out;
}

// Lifetime: the view is into `status`.
inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// The same code with words in front: WithContext(status, "model half, version 3: ").
inline absl::Status WithContext(const absl::Status& status, std::string_view context) {
  return absl::Status(status.code(), Cat(context, Message(status)));
}

}  // namespace tensord::base
