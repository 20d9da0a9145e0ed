// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

// JSON with its members in the order that they were added, so that people can read it, too.
namespace tensord::doctor {

std::string JsonText(std::string_view bytes);  // Quoted; what is no ASCII becomes '?'.
std::string JsonNumber(double value);          // "null" for what JSON has no word for.
std::string JsonArray(const std::vector<std::string>& values);

class JsonObject {
 public:
  JsonObject& Raw(std::string_view name, std::string_view json);
  JsonObject& Add(std::string_view name, std::string_view text) {
    return Raw(name, JsonText(text));
  }
  JsonObject& Add(std::string_view name, const char* text) { return Raw(name, JsonText(text)); }
  JsonObject& Add(std::string_view name, double value) { return Raw(name, JsonNumber(value)); }
  JsonObject& Add(std::string_view name, bool value) { return Raw(name, value ? "true" : "false"); }
  std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace tensord::doctor
