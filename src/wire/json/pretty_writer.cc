// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/pretty_writer.h"

#include <cstring>

#include "wire/json/number.h"
#include "wire/json/print.h"

namespace tensord::wire {
namespace {

constexpr size_t kSpacesPerLevel = 4;

}  // namespace

void PrettyWriter::NewLine() {
  out_.push_back('\n');
  out_.append(levels_.size() * kSpacesPerLevel, ' ');
}

std::string* PrettyWriter::BeginValue() {
  if (levels_.empty()) return &out_;
  Level& level = levels_.back();
  const bool is_value_of_name = !level.is_array && level.values % 2 == 1;
  const bool on_this_line = level.is_array && single_line_;
  if (is_value_of_name) {
    out_.append(": ");
  } else {
    if (level.values > 0) out_.append(on_this_line ? ", " : ",");
    if (!on_this_line) NewLine();
  }
  ++level.values;
  return &out_;
}

// What stands between two elements of the innermost array.
std::string PrettyWriter::Separator() const {
  if (single_line_) return ", ";
  return ",\n" + std::string(levels_.size() * kSpacesPerLevel, ' ');
}

void PrettyWriter::Floats(std::span<const std::byte> floats) {
  const std::string separator = Separator();
  for (size_t at = 0; at < floats.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, floats.data() + at, sizeof(value));
    if (at == 0) {
      BeginValue();
    } else {
      out_ += separator;
    }
    AppendReal(value, &out_);
  }
  // BeginValue counted the first one.
  if (!floats.empty()) levels_.back().values += floats.size() / sizeof(float) - 1;
}

void PrettyWriter::Start(char bracket, bool is_array) {
  BeginValue()->push_back(bracket);
  levels_.push_back({is_array, 0});
}

void PrettyWriter::EndObject() {
  const bool empty = levels_.back().values == 0;
  levels_.pop_back();
  if (!empty) NewLine();
  out_.push_back('}');
}

void PrettyWriter::EndArray() {
  const bool empty = levels_.back().values == 0;
  levels_.pop_back();
  if (!empty && !single_line_) NewLine();
  out_.push_back(']');
}

void PrettyWriter::String(std::string_view value) { AppendJsonString(value, BeginValue()); }

}  // namespace tensord::wire
