// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/json.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace tensord::doctor {

std::string JsonText(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else {
      text += byte < 0x20 || byte > 0x7e ? '?' : c;
    }
  }
  return text + "\"";
}

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  char text[64];
  // As short as it can be read back, but not with an exponent.
  const auto end = std::to_chars(text, text + sizeof(text), std::round(value * 1e6) / 1e6,
                                 std::chars_format::fixed);
  return end.ec == std::errc() ? std::string(text, end.ptr) : "null";
}

std::string JsonArray(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += base::Cat(text.empty() ? "" : ", ", value);
  return base::Cat("[", text, "]");
}

JsonObject& JsonObject::Raw(std::string_view name, std::string_view json) {
  members_ += base::Cat(members_.empty() ? "" : ", ", JsonText(name), ": ", json);
  return *this;
}

}  // namespace tensord::doctor
