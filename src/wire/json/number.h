// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

// Numbers between JSON text and bits.
namespace tensord::wire {

// Reads the number at the start of [at, end), rounded once to the nearest value; too large becomes
// infinity, too small zero. Returns the end of the number, null when none is there.
const char* ParseReal(const char* at, const char* end, float* value);
const char* ParseReal(const char* at, const char* end, double* value);

// Likewise, of text that nobody has checked: null also for what JSON's grammar (with NaN, Inf and
// Infinity) does not allow, and for what is too large.
const char* ReadCheckedReal(const char* at, const char* end, float* value);
const char* ReadCheckedReal(const char* at, const char* end, double* value);

// An integer literal as sign and magnitude: no fraction, no exponent, at most 2^64 - 1.
struct JsonInteger {
  bool negative = false;
  uint64_t magnitude = 0;
};
// Returns the end of the literal, null when there is none, or a number that is not one.
const char* ParseInteger(const char* at, const char* end, JsonInteger* value);
// Likewise, of text that nobody has checked: null also for leading zeros.
const char* ReadCheckedInteger(const char* at, const char* end, JsonInteger* value);

// True when the integer is a T; *value is then set.
template <typename T>
bool Narrow(const JsonInteger& integer, T* value) {
  if (!integer.negative || integer.magnitude == 0) {
    if (integer.magnitude > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
    *value = static_cast<T>(integer.magnitude);
    return true;
  }
  if constexpr (std::is_signed_v<T>) {
    // The lowest value's magnitude is one above the highest's.
    if (integer.magnitude > static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1) return false;
    *value = static_cast<T>(0 - integer.magnitude);
    return true;
  }
  return false;
}

// IEEE 754 binary16 and bfloat16 bit patterns, to nearest even; too large becomes infinity.
uint16_t HalfBits(double value);
uint16_t Bfloat16Bits(double value);
float HalfValue(uint16_t bits);
float Bfloat16Value(uint16_t bits);

// The original's text: six significant digits, all of them (9 or 17) when six do not read back as
// the same value; ".0" behind whole numbers; NaN, Infinity, -Infinity.
void AppendReal(float value, std::string* out);
void AppendReal(double value, std::string* out);

}  // namespace tensord::wire
