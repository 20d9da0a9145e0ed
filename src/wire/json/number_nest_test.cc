// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/number_nest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"

namespace tensord::wire {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::span<std::byte> Room(std::vector<T>* values) {
  return std::as_writable_bytes(std::span(*values));
}

template <typename T>
std::vector<T> ReadAll(const std::string& text, size_t room = 64) {
  std::vector<T> values(room);
  NumberNest nest;
  const char* const after =
      ReadNumberNest<T>(text.data(), text.data() + text.size(), Room(&values), &nest);
  values.resize(after == nullptr ? 0 : nest.elements);
  EXPECT_TRUE(after == nullptr || after == text.data() + text.size());
  return values;
}

std::vector<int64_t> DimsOf(const std::string& text) {
  std::vector<float> values(64);
  NumberNest nest;
  if (ReadNumberNest<float>(text.data(), text.data() + text.size(), Room(&values), &nest) ==
      nullptr) {
    return {};
  }
  return {nest.dims.begin(), nest.dims.begin() + nest.rank};
}

TEST(NumberNest, ItsShapeIsThatOfTheLists) {
  EXPECT_THAT(DimsOf("[1]"), ElementsAre(1));
  EXPECT_THAT(DimsOf("[1, 2,3]"), ElementsAre(3));
  EXPECT_THAT(DimsOf("[[1,2,3], [4,5,6]]"), ElementsAre(2, 3));
  EXPECT_THAT(DimsOf(" [ [ [ 1 , 2 ] ] ,\n[\t[3,4]\r] ]"), ElementsAre(2, 1, 2));
}

TEST(NumberNest, WhatIsNoRegularNestIsLeftToOthers) {
  for (const char* text : {"",
                           "1",
                           "[",
                           "[]",
                           "[[]]",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "[1]]x",
                           "[[1],2]",
                           "[1,[2]]",
                           "[[1,2],[3]]",
                           "[[1],[2,3]]",
                           "[[[1]],[[2],[3]]]",
                           "[\"1\"]",
                           "[{}]",
                           "[null]",
                           "[true]",
                           "[+1]",
                           "[.5]",
                           "[1.]",
                           "[01]",
                           "[-]",
                           "[1e]",
                           "[1e+]",
                           "[--1]",
                           "[1.5.5]",
                           "[0x1]",
                           "[nan]",
                           "[INF]",
                           "[[[[[[[[[1]]]]]]]]]"}) {
    // Behind white space, so that also the quick reader has bytes to look ahead.
    for (const std::string& whole : {std::string(text), text + std::string(64, ' ')}) {
      std::vector<float> values(64);
      NumberNest nest;
      const char* const after =
          ReadNumberNest<float>(whole.data(), whole.data() + whole.size(), Room(&values), &nest);
      const bool all = after != nullptr &&
                       std::string_view(after).find_first_not_of(' ') == std::string_view::npos;
      EXPECT_FALSE(all) << text;
    }
  }
}

TEST(NumberNest, MoreThanTheRoomIsRefused) {
  EXPECT_EQ(ReadAll<float>("[1,2,3]", 3).size(), 3);
  EXPECT_EQ(ReadAll<float>("[1,2,3]", 2).size(), 0);
}

TEST(NumberNest, NumbersOfEveryFormAreRead) {
  EXPECT_THAT(ReadAll<float>("[0, -1, 2.5, -0.125, 1e3, 1E-2, 25.5e+1, 123456789]"),
              ElementsAre(0.0f, -1.0f, 2.5f, -0.125f, 1e3f, 1e-2f, 255.0f, 123456789.0f));
  const std::vector<float> odd = ReadAll<float>("[NaN, Infinity, -Infinity, Inf, -0.0, -0]");
  ASSERT_EQ(odd.size(), 6);
  EXPECT_TRUE(std::isnan(odd[0]));
  EXPECT_EQ(odd[1], std::numeric_limits<float>::infinity());
  EXPECT_EQ(odd[2], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(odd[3], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(odd[4]));
  EXPECT_FALSE(std::signbit(odd[5]));
}

TEST(NumberNest, IntegersKeepToTheirRange) {
  EXPECT_THAT(ReadAll<uint8_t>("[0, 255, -0]"), ElementsAre(0, 255, 0));
  EXPECT_THAT(ReadAll<uint8_t>("[256]"), ElementsAre());
  EXPECT_THAT(ReadAll<uint8_t>("[-1]"), ElementsAre());
  EXPECT_THAT(ReadAll<int8_t>("[-128, 127]"), ElementsAre(-128, 127));
  EXPECT_THAT(ReadAll<int8_t>("[-129]"), ElementsAre());
  EXPECT_THAT(
      ReadAll<int64_t>("[-9223372036854775808, 9223372036854775807]"),
      ElementsAre(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(ReadAll<int64_t>("[9223372036854775808]"), ElementsAre());
  EXPECT_THAT(ReadAll<uint64_t>("[18446744073709551615]"),
              ElementsAre(std::numeric_limits<uint64_t>::max()));
  EXPECT_THAT(ReadAll<uint64_t>("[18446744073709551616]"), ElementsAre());
  EXPECT_THAT(ReadAll<int32_t>("[1.0]"), ElementsAre());
  EXPECT_THAT(ReadAll<int32_t>("[1e3]"), ElementsAre());
}

// Reads the text both near the end of the body and far from it.
template <typename T>
void ExpectNearest(const std::string& number) {
  const T expected = sizeof(T) == 4 ? static_cast<T>(std::strtof(number.c_str(), nullptr))
                                    : static_cast<T>(std::strtod(number.c_str(), nullptr));
  const std::string list = base::Cat("[", number, ",", number, std::string(50, ' '), "]");
  const std::vector<T> values = ReadAll<T>(list);
  ASSERT_EQ(values.size(), 2) << number;
  for (const T value : values) {
    EXPECT_EQ(std::memcmp(&value, &expected, sizeof(T)), 0) << number << " became " << value;
  }
}

TEST(NumberNest, EveryNumberIsTheNearestOne) {
  std::mt19937_64 random(20261130);
  for (int i = 0; i < 200'000; ++i) {
    // A mantissa of 1 to 19 digits with the point anywhere in it.
    const int digits = 1 + static_cast<int>(random() % 19);
    std::string number = std::to_string(random() % 9 + 1);
    while (static_cast<int>(number.size()) < digits) number += std::to_string(random() % 10);
    const size_t point = random() % (number.size() + 1);
    if (point == 0) {
      number = base::Cat("0.", number);
    } else if (point < number.size()) {
      number.insert(point, ".");
    }
    if (random() % 2 == 0) number = base::Cat("-", number);
    if (random() % 8 == 0) number += base::Cat("e", static_cast<int>(random() % 45) - 30);
    ExpectNearest<float>(number);
    ExpectNearest<double>(number);
  }
}

TEST(NumberNest, HalfwayBetweenTwoFloatsIsRoundedByAllDigits) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    // The double that lies exactly between two floats, and its neighbours.
    const auto bits = static_cast<uint32_t>((64 + random() % 24) << 23 | (random() & 0x7fffff));
    const double low = std::bit_cast<float>(bits);
    const double high = std::bit_cast<float>(bits + 1);
    const double middle = (low + high) / 2;
    for (const double value : {middle, std::nextafter(middle, low), std::nextafter(middle, high)}) {
      char text[64];
      std::snprintf(text, sizeof(text), "%.18f", value);
      ExpectNearest<float>(text);
      std::snprintf(text, sizeof(text), "%.17g", value);
      ExpectNearest<float>(text);
    }
  }
}

}  // namespace
}  // namespace tensord::wire
