// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::wire {

// Writes JSON with the layout of rapidjson's PrettyWriter, 4 spaces a level: every member and every
// array element on a line of its own, or, while single_line is on, arrays on one line.
class PrettyWriter {
 public:
  explicit PrettyWriter(std::string* out) : out_(*out) {}

  void set_single_line(bool on) { single_line_ = on; }
  void StartObject() { Start('{', /*is_array=*/false); }
  void EndObject();
  void StartArray() { Start('[', /*is_array=*/true); }
  void EndArray();
  void Name(std::string_view name) { String(name); }
  void String(std::string_view value);
  // Makes ready for a value of any kind, which the caller then appends to out().
  std::string* BeginValue();
  // For a loop over many elements of the innermost array, each printed by AppendReal: the same as
  // BeginValue and AppendReal for each.
  void Floats(std::span<const std::byte> floats);

 private:
  struct Level {
    bool is_array;
    size_t values;  // Names and values both count.
  };

  void Start(char bracket, bool is_array);
  void NewLine();
  std::string Separator() const;

  std::string& out_;
  std::vector<Level> levels_;
  bool single_line_ = false;
};

}  // namespace tensord::wire
