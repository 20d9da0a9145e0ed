// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/ascii.h"
#include "wire/json/number.h"

// Numbers as most are: a few digits, perhaps a point and some more. Inline, for the loop that reads
// a hundred thousand of them. Each function checks the grammar (no leading zeros, digits on both
// sides of a point) and gives up where a number needs a closer look.
namespace tensord::wire {

// The value of eight bytes, when all are digits (first byte most significant).
// Source: the usual SIMD-within-a-register steps, as in Lemire, "Number Parsing at a Gigabyte per
// Second" (2021), section 5.
inline bool ReadEightDigits(const char* at, uint64_t* value) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof(bytes));
  const uint64_t digits = bytes - 0x3030303030303030;
  if (((bytes + 0x4646464646464646) | digits) & 0x8080808080808080) return false;
  uint64_t pairs = digits * 10 + (digits >> 8);
  pairs = ((pairs & 0x000000FF000000FF) * 0x000F424000000064 +
           ((pairs >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >>
          32;
  *value = pairs;
  return true;
}

// A decimal number as its digits: mantissa * 10^-fraction_digits.
struct PlainDecimal {
  bool negative = false;
  bool has_point = false;
  uint64_t mantissa = 0;
  int fraction_digits = 0;  // Those behind the point.
};

// Returns the end of the number; null when it is not of this form, has an exponent or may have more
// than 19 digits, which is what a mantissa holds.
inline const char* ReadPlainDecimal(const char* at, const char* end, PlainDecimal* out) {
  // So that eight bytes can be looked at wherever a number of this size stands.
  constexpr std::ptrdiff_t kBytesAhead = 40;
  constexpr int kDigitsMax = 19;
  if (end - at < kBytesAhead) return nullptr;
  out->negative = *at == '-';
  at += out->negative ? 1 : 0;
  const char* const whole = at;
  uint64_t mantissa = 0;
  while (base::IsDigit(*at) && at - whole <= kDigitsMax) {
    mantissa = mantissa * 10 + static_cast<uint64_t>(*at++ - '0');
  }
  int digits = static_cast<int>(at - whole);
  if (digits == 0 || digits > kDigitsMax || (*whole == '0' && digits > 1)) return nullptr;
  out->has_point = *at == '.';
  out->fraction_digits = 0;
  if (out->has_point) {
    const char* const fraction = ++at;
    uint64_t eight = 0;
    while (digits + 8 <= kDigitsMax && ReadEightDigits(at, &eight)) {
      mantissa = mantissa * 100'000'000 + eight;
      at += 8;
      digits += 8;
    }
    while (digits < kDigitsMax && base::IsDigit(*at)) {
      mantissa = mantissa * 10 + static_cast<uint64_t>(*at++ - '0');
      ++digits;
    }
    out->fraction_digits = static_cast<int>(at - fraction);
    if (out->fraction_digits == 0 || base::IsDigit(*at)) return nullptr;
  }
  if (*at == 'e' || *at == 'E') return nullptr;
  out->mantissa = mantissa;
  return at;
}

inline constexpr std::array<double, 23> kPowersOfTen = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// The nearest double. False when one division does not give it: both sides must be exact (Clinger,
// "How to Read Floating Point Numbers Accurately", 1990).
inline bool NearestOf(const PlainDecimal& number, double* value) {
  if (number.mantissa > uint64_t{1} << 53) return false;
  *value = static_cast<double>(number.mantissa) /
           kPowersOfTen[static_cast<size_t>(number.fraction_digits)];
  if (number.negative) *value = -*value;
  return true;
}

// The nearest float, by way of a double that is off by less than two of its last places (mantissa
// and quotient are each rounded once). Where two floats meet, halfway, such a double could lie on
// the wrong side: within four places of there, and outside the normal range, false.
inline bool NearestOf(const PlainDecimal& number, float* value) {
  constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1;  // Mantissa bits that a float drops.
  constexpr uint64_t kHalfway = uint64_t{1} << 28;
  constexpr uint64_t kPlacesOff = 4;
  const double wide = static_cast<double>(number.mantissa) /
                      kPowersOfTen[static_cast<size_t>(number.fraction_digits)];
  const uint64_t dropped = std::bit_cast<uint64_t>(wide) & kBelowFloat;
  if (dropped - (kHalfway - kPlacesOff) <= 2 * kPlacesOff) return false;
  const bool normal = wide >= 2.0 * std::numeric_limits<float>::min() || number.mantissa == 0;
  if (!normal) return false;
  *value = static_cast<float>(number.negative ? -wide : wide);
  return true;
}

template <typename T>
requires std::is_floating_point_v<T>
const char* ReadPlainNumber(const char* at, const char* end, T* value) {
  PlainDecimal number;
  const char* const after = ReadPlainDecimal(at, end, &number);
  // Most that comes here is a long number, or one with an exponent.
  if (after == nullptr) return ReadCheckedReal(at, end, value);
  if (!NearestOf(number, value)) return ParseReal(at, end, value);
  if (number.mantissa == 0 && !number.has_point) *value = 0;  // No negative zero for an integer.
  return after;
}

template <typename T>
requires std::is_integral_v<T>
const char* ReadPlainNumber(const char* at, const char* end, T* value) {
  PlainDecimal number;
  JsonInteger integer;
  const char* after = ReadPlainDecimal(at, end, &number);
  if (after == nullptr) {
    after = ReadCheckedInteger(at, end, &integer);
  } else {
    integer = {.negative = number.negative, .magnitude = number.mantissa};
  }
  if (after == nullptr || number.has_point) return nullptr;
  return Narrow(integer, value) ? after : nullptr;
}

}  // namespace tensord::wire
