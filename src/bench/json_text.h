// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace tensord::bench {

// Writes one JSON object, member by member. Lifetime: a part of an object is text.
class JsonObject {
 public:
  JsonObject& Text(std::string_view name, std::string_view value);
  JsonObject& Number(std::string_view name, double value, int decimals = 3);
  JsonObject& Count(std::string_view name, uint64_t value);
  JsonObject& Flag(std::string_view name, bool value);
  // A value that is JSON already.
  JsonObject& Raw(std::string_view name, std::string_view json);
  std::string Done() const { return "{" + text_ + "}"; }

 private:
  void Name(std::string_view name);

  std::string text_;
};

// Joins JSON values to an array.
class JsonArray {
 public:
  void Add(std::string_view json);
  std::string Done() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

// In quotation marks. What is no character of ASCII becomes '?': a server's words are bytes.
std::string Quoted(std::string_view text);

}  // namespace tensord::bench
