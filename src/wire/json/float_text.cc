// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/float_text.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "wire/json/plain_number.h"

namespace tensord::wire {
namespace {

constexpr int kShortDigits = 6;  // Tried first.
constexpr int kAllDigits = 9;    // Enough to tell any float from its neighbours.
constexpr int kExponentMin = -4;
constexpr double kSmallest = 1e-4;
constexpr double kTooLarge = 1e6;

double PowerOfTen(int exponent) { return kPowersOfTen[static_cast<size_t>(exponent)]; }

// Of the first digit. REQUIRES: kSmallest <= value < kTooLarge. No float lies between a power of
// ten below 1 and the double nearest to it, so comparing with that double is exact.
int DecimalExponent(double value) {
  constexpr double kBounds[] = {1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5};
  int exponent = kExponentMin;
  for (const double bound : kBounds) exponent += value >= bound ? 1 : 0;
  return exponent;
}

// value * 10^shift, rounded to an integer. The product of a float and an exact power of ten is
// rounded once, so it is off by less than 1e-6 here: false where the fraction is too near a half to
// tell which way the exact one goes.
bool RoundShifted(double value, int shift, uint32_t* digits) {
  constexpr double kDoubt = 1e-5;
  const double shifted = value * PowerOfTen(shift);
  const auto whole = static_cast<uint32_t>(shifted);
  const double fraction = shifted - whole;
  if (std::fabs(fraction - 0.5) < kDoubt) return false;
  *digits = whole + (fraction > 0.5 ? 1 : 0);
  return true;
}

// Writes `count` digits, a point where it belongs, and no zeros behind the last digit of the
// fraction; ".0" when there is no fraction.
char* Place(uint32_t digits, int count, int exponent, char* out) {
  char text[kAllDigits];
  for (int i = count - 1; i >= 0; --i) {
    text[i] = static_cast<char>('0' + digits % 10);
    digits /= 10;
  }
  const auto copy = [&out, &text](int first, int end) {
    std::memcpy(out, text + first, static_cast<size_t>(end - first));
    out += end - first;
  };
  int used = count;
  while (used > exponent + 1 && used > 0 && text[used - 1] == '0') --used;
  if (exponent >= 0) {
    copy(0, exponent + 1);
    *out++ = '.';
    if (used == exponent + 1) {
      *out++ = '0';
    } else {
      copy(exponent + 1, used);
    }
    return out;
  }
  std::memcpy(out, "0.000", 5);
  out += 1 - exponent;
  copy(0, used);
  return out;
}

enum class Same : uint8_t { kYes, kNo, kInDoubt };

// Whether digits * 10^-shift reads back as `value`.
Same ReadsBackAs(uint32_t digits, int shift, double value) {
  float again = 0;
  const PlainDecimal decimal{.mantissa = digits, .fraction_digits = shift};
  if (!NearestOf(decimal, &again)) return Same::kInDoubt;
  return static_cast<double>(again) == value ? Same::kYes : Same::kNo;
}

}  // namespace

char* PrintUsualFloat(float value, char* out) {
  const double size = std::fabs(static_cast<double>(value));
  if (!(size >= kSmallest && size < kTooLarge)) return nullptr;
  const int exponent = DecimalExponent(size);
  const int shift = kShortDigits - 1 - exponent;
  uint32_t digits = 0;
  if (!RoundShifted(size, shift, &digits)) return nullptr;
  int count = kShortDigits;
  const Same same = ReadsBackAs(digits, shift, size);
  if (same == Same::kInDoubt) return nullptr;
  if (same == Same::kNo) {
    count = kAllDigits;
    if (!RoundShifted(size, shift + kAllDigits - kShortDigits, &digits)) return nullptr;
  }
  // Rounded up into the next power of ten.
  if (digits >= static_cast<uint32_t>(PowerOfTen(count))) return nullptr;
  if (value < 0) *out++ = '-';
  return Place(digits, count, exponent, out);
}

}  // namespace tensord::wire
