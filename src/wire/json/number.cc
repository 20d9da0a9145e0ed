// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/number.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include "base/ascii.h"
#include "fast_float/fast_float.h"
#include "wire/json/float_text.h"

namespace tensord::wire {
namespace {

bool ContinuesNumber(const char* at, const char* end) {
  return at != end && (base::IsDigit(*at) || *at == '.' || *at == 'e' || *at == 'E');
}

template <typename T>
const char* ParseRealAs(const char* at, const char* end, T* value) {
  const auto result = fast_float::from_chars(at, end, *value);
  if (result.ec == std::errc::invalid_argument) return nullptr;
  // An integer literal has no negative zero.
  if (*value == 0 && *at == '-' && result.ptr == at + 2) *value = 0;
  return result.ptr;
}

const char* SkipDigits(const char* at, const char* end) {
  while (at != end && base::IsDigit(*at)) ++at;
  return at;
}

const char* SkipWord(const char* at, const char* end, std::string_view word) {
  const std::string_view rest(at, static_cast<size_t>(end - at));
  return rest.substr(0, word.size()) == word ? at + word.size() : nullptr;
}

// The digits of an integer, without a leading zero; null for another grammar.
const char* SkipWhole(const char* at, const char* end) {
  const char* const after = SkipDigits(at, end);
  return after == at || (*at == '0' && after - at > 1) ? nullptr : after;
}

// The end of a number by the grammar; null when there is none.
const char* SkipReal(const char* at, const char* end) {
  if (at != end && *at == '-') ++at;
  if (at != end && *at == 'N') return SkipWord(at, end, "NaN");
  if (at != end && *at == 'I') {
    const char* const whole = SkipWord(at, end, "Infinity");
    return whole != nullptr ? whole : SkipWord(at, end, "Inf");
  }
  at = SkipWhole(at, end);
  if (at != nullptr && at != end && *at == '.') {
    const char* const fraction = at + 1;
    at = SkipDigits(fraction, end);
    if (at == fraction) return nullptr;
  }
  if (at != nullptr && at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end && (*at == '+' || *at == '-')) ++at;
    const char* const exponent = at;
    at = SkipDigits(exponent, end);
    if (at == exponent) return nullptr;
  }
  return at;
}

template <typename T>
const char* ReadCheckedRealAs(const char* at, const char* end, T* value) {
  const char* const after = SkipReal(at, end);
  if (after == nullptr || ParseRealAs(at, after, value) != after) return nullptr;
  return std::isinf(*value) && base::IsDigit(after[-1]) ? nullptr : after;
}

// Rounds a finite positive value to a format with that many stored mantissa bits; `bias` is the
// exponent's. The result may be the pattern of infinity.
uint16_t RoundTo(double value, int mantissa_bits, int bias) {
  int exponent = 0;
  std::frexp(value, &exponent);
  // Stored exponents below 1 are subnormal: their step no longer shrinks.
  const int stored = std::max(exponent - 1 + bias, 1);
  const double steps = std::nearbyint(std::ldexp(value, mantissa_bits + bias - stored));
  const auto whole = static_cast<uint64_t>(steps);  // 2^mantissa_bits .. 2^(mantissa_bits + 1).
  const uint64_t bits = (static_cast<uint64_t>(stored - 1) << mantissa_bits) + whole;
  const uint64_t infinity = static_cast<uint64_t>(2 * bias + 1) << mantissa_bits;
  return static_cast<uint16_t>(std::min(bits, infinity));
}

uint16_t ToSixteenBits(double value, int mantissa_bits, int bias) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto infinity = static_cast<uint16_t>((2 * bias + 1) << mantissa_bits);
  if (std::isnan(value)) {
    return static_cast<uint16_t>(sign | infinity | 1 << (mantissa_bits - 1));
  }
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  return sign | RoundTo(std::fabs(value), mantissa_bits, bias);
}

template <typename T>
void AppendRealAs(T value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append(std::isnan(value) ? "NaN" : std::signbit(value) ? "-Infinity" : "Infinity");
    return;
  }
  char text[40];
  const auto print = [&](int precision) {
    return std::to_chars(text, text + sizeof(text), value, std::chars_format::general, precision);
  };
  const char* end = print(6).ptr;
  T again = 0;
  if (ParseReal(text, end, &again) != end || again != value) {
    end = print(std::numeric_limits<T>::max_digits10).ptr;
  }
  const std::string_view digits(text, static_cast<size_t>(end - text));
  out->append(digits);
  if (digits.find_first_of(".e") == std::string_view::npos) out->append(".0");
}

}  // namespace

const char* ParseReal(const char* at, const char* end, float* value) {
  return ParseRealAs(at, end, value);
}
const char* ParseReal(const char* at, const char* end, double* value) {
  return ParseRealAs(at, end, value);
}

const char* ReadCheckedReal(const char* at, const char* end, float* value) {
  return ReadCheckedRealAs(at, end, value);
}
const char* ReadCheckedReal(const char* at, const char* end, double* value) {
  return ReadCheckedRealAs(at, end, value);
}

const char* ParseInteger(const char* at, const char* end, JsonInteger* value) {
  value->negative = at != end && *at == '-';
  if (value->negative) ++at;
  if (at == end || !base::IsDigit(*at)) return nullptr;
  const auto result = std::from_chars(at, end, value->magnitude);
  if (result.ec != std::errc() || ContinuesNumber(result.ptr, end)) return nullptr;
  return result.ptr;
}

const char* ReadCheckedInteger(const char* at, const char* end, JsonInteger* value) {
  const char* const digits = at != end && *at == '-' ? at + 1 : at;
  return SkipWhole(digits, end) == nullptr ? nullptr : ParseInteger(at, end, value);
}

uint16_t HalfBits(double value) { return ToSixteenBits(value, 10, 15); }
uint16_t Bfloat16Bits(double value) { return ToSixteenBits(value, 7, 127); }

float HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  float value = 0;
  if (exponent == 0x1f) {
    value = mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                          : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

float Bfloat16Value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

void AppendReal(float value, std::string* out) {
  char text[kFloatTextBytes];
  if (const char* end = PrintUsualFloat(value, text); end != nullptr) {
    out->append(text, static_cast<size_t>(end - text));
    return;
  }
  AppendRealAs(value, out);
}
void AppendReal(double value, std::string* out) { AppendRealAs(value, out); }

}  // namespace tensord::wire
