// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/float_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

namespace tensord::wire {
namespace {

// By the words of the contract: six digits, nine when those do not read back, ".0" when whole.
std::string Expected(float value) {
  char text[40];
  for (const int precision : {6, 9}) {
    const auto printed =
        std::to_chars(text, text + sizeof(text), value, std::chars_format::general, precision);
    std::string digits(text, printed.ptr);
    if (precision == 6 && std::strtof(digits.c_str(), nullptr) != value) continue;
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    return digits;
  }
  return "";
}

// False when the value went the general way.
bool ExpectSame(float value) {
  char text[kFloatTextBytes];
  const char* const end = PrintUsualFloat(value, text);
  if (end == nullptr) return false;
  EXPECT_EQ(std::string(text, static_cast<size_t>(end - text)), Expected(value));
  return true;
}

TEST(FloatText, UsualFloatsAreSpelledAsTheContractSays) {
  for (const float value :
       {0.1f, 1.0f / 3, 100.0f, 0.5f, 1.0f, 999999.0f, 999999.5f, 123456.789f, 0.0001f, 0.00012345f,
        0.1f + 0.2f, 9.5f, 99999.95f, 0.99999994f, 9.9999990f, 16777.216f, 65504.0f}) {
    ExpectSame(value);
    ExpectSame(-value);
  }
}

TEST(FloatText, WhatIsTooLargeTooSmallOrNoNumberIsLeftAlone) {
  for (const float value : {0.0f, -0.0f, 1e6f, 9.9e-5f, 1e30f, 1e-40f, NAN, INFINITY, -INFINITY}) {
    char text[kFloatTextBytes];
    EXPECT_EQ(PrintUsualFloat(value, text), nullptr) << value;
  }
}

TEST(FloatText, MostRandomFloatsAreUsualAndAllAreRight) {
  std::mt19937 random(20261130);
  std::uniform_real_distribution<float> exponent(-4, 6);
  int usual = 0;
  constexpr int kValues = 300'000;
  for (int i = 0; i < kValues; ++i) {
    float value = std::pow(10.0f, exponent(random));
    if (i % 3 == 0) value = std::round(value * 100) / 100;  // Few digits.
    if (i % 7 == 0) value = -value;
    if (ExpectSame(value)) ++usual;
  }
  EXPECT_GT(usual, kValues * 8 / 10);
}

TEST(FloatText, TiesAndPowersOfTenAreRight) {
  for (int exponent = -4; exponent < 6; ++exponent) {
    const float power = std::pow(10.0f, static_cast<float>(exponent));
    float below = power;
    float above = power;
    for (int i = 0; i < 1000; ++i) {
      ExpectSame(below);
      ExpectSame(above);
      below = std::nextafter(below, 0.0f);
      above = std::nextafter(above, 1e30f);
    }
  }
  // A fraction of a power of two can end in an exact half of the ninth digit.
  for (int i = 0; i < 100'000; ++i) ExpectSame(static_cast<float>(i) / 4096 + 4096);
}

}  // namespace
}  // namespace tensord::wire
