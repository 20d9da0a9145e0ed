// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace tensord::doctor {

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> pieces;
  size_t at = text.find_first_not_of(separators);
  while (at != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    pieces.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(separators, end);
  }
  return pieces;
}

std::optional<int64_t> ToNumber(std::string_view text) {
  text = Trim(text);
  int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ToDouble(std::string_view text) {
  text = Trim(text);
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string_view ValueOf(std::string_view text, std::string_view key) {
  for (const std::string_view line : Split(text, "\n")) {
    const size_t at = line.find_first_of(":=");
    if (at == std::string_view::npos || Trim(line.substr(0, at)) != key) continue;
    return Trim(line.substr(at + 1));
  }
  return {};
}

std::optional<int64_t> NumberOf(std::string_view text, std::string_view key) {
  std::string_view value = ValueOf(text, key);
  const bool kilobytes = value.ends_with(" kB");
  if (kilobytes) value.remove_suffix(3);
  const std::optional<int64_t> number = ToNumber(value);
  if (!number.has_value() || !kilobytes) return number;
  if (*number < 0 || *number > (int64_t{1} << 50)) return std::nullopt;
  return *number * 1024;
}

std::vector<int> ListOf(std::string_view text) {
  constexpr int64_t kLast = 1 << 16;  // More CPUs than Linux knows.
  std::vector<int> members;
  for (const std::string_view range : Split(Trim(text), ",")) {
    const size_t dash = range.find('-');
    const std::optional<int64_t> first = ToNumber(range.substr(0, dash));
    const std::optional<int64_t> last =
        dash == std::string_view::npos ? first : ToNumber(range.substr(dash + 1));
    if (!first.has_value() || !last.has_value() || *first < 0 || *last > kLast) return {};
    for (int64_t i = *first; i <= *last; ++i) members.push_back(static_cast<int>(i));
  }
  return members;
}

std::string Fixed(double value, int digits) {
  if (!std::isfinite(value)) return "?";
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, digits);
  return end.ec == std::errc() ? std::string(text, end.ptr) : "?";
}

std::string Percent(double share) { return base::Cat(Fixed(share * 100, 0), " %"); }

std::string Bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  const bool small = value < 100 && unit > 1;
  return base::Cat(Fixed(value, small ? 1 : 0), " ", kUnits[unit]);
}

std::string Join(const std::vector<std::string>& pieces, std::string_view between) {
  std::string text;
  for (const std::string& piece : pieces) text += base::Cat(text.empty() ? "" : between, piece);
  return text;
}

std::string Printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return out;
}

std::string Ascii(std::string_view text) {
  std::string out = Printable(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) > 0x7f) c = '?';
  }
  return out;
}

}  // namespace tensord::doctor
