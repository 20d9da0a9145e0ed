// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/base64.h"

#include <array>
#include <cstdint>

namespace tensord::wire {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int8_t kInvalid = -1;
constexpr int8_t kSpace = -2;

constexpr std::array<int8_t, 256> MakeValues() {
  std::array<int8_t, 256> values{};
  values.fill(kInvalid);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  values['-'] = values['+'];
  values['_'] = values['/'];
  for (const char space : {' ', '\t', '\n', '\r', '\f', '\v'}) {
    values[static_cast<uint8_t>(space)] = kSpace;
  }
  return values;
}

constexpr std::array<int8_t, 256> kValues = MakeValues();

}  // namespace

bool AppendBase64Decoded(std::string_view text, std::string* out) {
  uint32_t bits = 0;
  int pending = 0;  // Digits of the last, incomplete group.
  int padding = 0;
  for (const char c : text) {
    const int8_t value = kValues[static_cast<uint8_t>(c)];
    if (value == kSpace) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    if (value == kInvalid || padding > 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++pending < 4) continue;
    pending = 0;
    out->push_back(static_cast<char>(bits >> 16));
    out->push_back(static_cast<char>(bits >> 8));
    out->push_back(static_cast<char>(bits));
  }
  if (pending == 1 || (padding > 0 && pending + padding != 4)) return false;
  if (pending >= 2) out->push_back(static_cast<char>(bits >> (pending == 2 ? 4 : 10)));
  if (pending == 3) out->push_back(static_cast<char>(bits >> 2));
  return true;
}

void AppendBase64(std::string_view bytes, std::string* out) {
  const auto digit = [out](uint32_t value) { out->push_back(kAlphabet[value & 0x3f]); };
  const auto byte = [bytes](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i]));
  };
  size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    digit(group >> 18);
    digit(group >> 12);
    digit(group >> 6);
    digit(group);
  }
  if (i == bytes.size()) return;
  const bool two = i + 2 == bytes.size();
  const uint32_t group = byte(i) << 16 | (two ? byte(i + 1) << 8 : 0);
  digit(group >> 18);
  digit(group >> 12);
  if (two) digit(group >> 6);
  out->append(two ? "=" : "==");
}

}  // namespace tensord::wire
