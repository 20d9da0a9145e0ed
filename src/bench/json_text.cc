// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/json_text.h"

#include <fmt/format.h>

#include <cmath>

namespace tensord::bench {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += byte < 0x80 ? c : '?';
    }
  }
  return out + '"';
}

void JsonObject::Name(std::string_view name) {
  if (!text_.empty()) text_ += ", ";
  text_ += Quoted(name);
  text_ += ": ";
}

JsonObject& JsonObject::Raw(std::string_view name, std::string_view json) {
  Name(name);
  text_ += json;
  return *this;
}

JsonObject& JsonObject::Text(std::string_view name, std::string_view value) {
  return Raw(name, Quoted(value));
}

JsonObject& JsonObject::Number(std::string_view name, double value, int decimals) {
  return Raw(name, std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "null");
}

JsonObject& JsonObject::Count(std::string_view name, uint64_t value) {
  return Raw(name, fmt::format("{}", value));
}

JsonObject& JsonObject::Flag(std::string_view name, bool value) {
  return Raw(name, value ? "true" : "false");
}

void JsonArray::Add(std::string_view json) {
  if (!text_.empty()) text_ += ", ";
  text_ += json;
}

}  // namespace tensord::bench
