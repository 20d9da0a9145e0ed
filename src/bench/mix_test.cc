// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bench/arrivals.h"

namespace tensord::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Arrivals, PoissonGapsHaveTheMeanAndTheSpreadOfAnExponential) {
  constexpr int kCount = 200'000;
  Arrivals arrivals(Pacing::kPoisson, 1'000, 7);
  double sum = 0;
  double squares = 0;
  int64_t last = 0;
  for (int i = 0; i < kCount; ++i) {
    const int64_t at = arrivals.Next();
    const auto gap = static_cast<double>(at - last);
    ASSERT_GE(gap, 0);
    last = at;
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 1e6, 1e4);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean) / mean, 1.0, 0.02);
}

TEST(Arrivals, AConstantRateDoesNotDrift) {
  Arrivals arrivals(Pacing::kConstant, 3, 1);
  int64_t at = 0;
  for (int i = 0; i < 3'000'000; ++i) at = arrivals.Next();
  EXPECT_NEAR(static_cast<double>(at), 1e15, 1e6);  // A millisecond in eleven days.
}

TEST(Arrivals, ASeedRepeats) {
  Arrivals first(Pacing::kPoisson, 10, 5);
  Arrivals second(Pacing::kPoisson, 10, 5);
  Arrivals third(Pacing::kPoisson, 10, 6);
  EXPECT_EQ(first.Next(), second.Next());
  EXPECT_NE(first.Next(), third.Next());
}

TEST(Mix, AnEntryIsANameAndWhatElseIsKnown) {
  auto entry = ParseMixEntry("half");
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->name, "half");
  EXPECT_EQ(entry->weight, 1);
  entry = ParseMixEntry(
      " big=2.5:a:b.pb  model=m signature=s method=classify input=x:float:1 input=y:int32:2 "
      "path=/p deadline_ms=20 criticality=sheddable header=X-A:b=c");
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->name, "big");
  EXPECT_EQ(entry->weight, 2.5);
  EXPECT_EQ(entry->file, "a:b.pb");
  EXPECT_EQ(entry->model, "m");
  EXPECT_EQ(entry->method, "classify");
  EXPECT_THAT(entry->inputs, ElementsAre("x:float:1", "y:int32:2"));
  EXPECT_EQ(entry->deadline, absl::Milliseconds(20));
  EXPECT_THAT(entry->headers, ElementsAre(Pair("x-a", "b=c")));
}

TEST(Mix, WhatIsWrongIsNamedWithWhatWasExpected) {
  const auto words = [](std::string_view text) {
    return std::string(ParseMixEntry(text).status().message());
  };
  EXPECT_THAT(words("=1"), HasSubstr("begin with a name"));
  EXPECT_THAT(words("a=x:f"), HasSubstr("must be a number"));
  EXPECT_THAT(words("a=-1"), HasSubstr("must be a number"));
  EXPECT_THAT(words("a=1 modle=m"), HasSubstr("no such key"));
  EXPECT_THAT(words("a=1 model"), HasSubstr("write key=value"));
  EXPECT_THAT(words("a=1 deadline_ms=0"), HasSubstr("above 0"));
  EXPECT_THAT(words("a=1 method=guess"), HasSubstr("predict, classify or regress"));
  EXPECT_THAT(words("a=1 header=x"), HasSubstr("name:value"));
}

TEST(Mix, AFileIsALineAnEntry) {
  const auto entries = ParseMixText("# comment\n\na=1\n  # more\nb=2:file \r\n");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[1].file, "file");
  EXPECT_THAT(std::string(ParseMixText("a=1\nb=x").status().message()), HasSubstr("line 2: "));
}

TEST(Mix, AHeaderKeepsItsLineToItself) {
  EXPECT_THAT(*ParseHeader("X-Name:  v:w"), Pair("x-name", "v:w"));
  EXPECT_FALSE(ParseHeader("a:b\r\nc: d").ok());
  EXPECT_FALSE(ParseHeader("a b:c").ok());
  EXPECT_FALSE(ParseHeader(":path").ok());
}

TEST(Mix, DrawsFollowTheWeights) {
  const Choice choice({1, 0, 3});
  std::mt19937_64 random(3);
  std::vector<int> drawn(3);
  for (int i = 0; i < 40'000; ++i) ++drawn[choice.Draw(random)];
  EXPECT_EQ(drawn[1], 0);
  EXPECT_NEAR(drawn[0], 10'000, 400);
}

TEST(Mix, ZipfHalvesTheSecondRank) {
  EXPECT_THAT(ZipfWeights(4, 1), ElementsAre(1, 0.5, 1.0 / 3, 0.25));
  EXPECT_THAT(ZipfWeights(2, 0), ElementsAre(1, 1));
}

}  // namespace
}  // namespace tensord::bench
