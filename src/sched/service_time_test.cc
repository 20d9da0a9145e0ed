// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/service_time.h"

#include <gtest/gtest.h>

#include <random>

namespace tensord::sched {
namespace {

absl::Duration Line(double fixed_ms, double per_row_ms, int64_t rows) {
  return absl::Milliseconds(fixed_ms + per_row_ms * static_cast<double>(rows));
}

TEST(GainCap, IsTheSmallestBatchThatReachesTheRate) {
  struct Row {
    const char* what;
    double fixed, per_row;
    int64_t cap;
  };
  const Row rows[] = {
      {"a CNN on a CPU", 0.2, 19.8, 1}, {"a model whose rows cost nothing", 4, 0, 64},
      {"a GPU", 4, 0.25, 64},           {"a small MLP", 0.002, 0.010, 7},
      {"slower by the row", -1, 2, 1},  {"no fixed cost", 0, 2, 1},
      {"BERT on a CPU", 0.8, 20, 2},    {"nothing known", 0, 0, 1},
  };
  for (const Row& row : rows) {
    const ServiceLine line{row.fixed, row.per_row};
    const int64_t cap = GainCap(line, 64);
    EXPECT_EQ(cap, row.cap) << row.what;
    if (cap == 1 || cap == 64) continue;
    const auto rate = [&](int64_t b) {
      return static_cast<double>(b) / (row.fixed + row.per_row * static_cast<double>(b));
    };
    EXPECT_GE(rate(cap), 0.97 / row.per_row) << row.what;
    EXPECT_LT(rate(cap - 1), 0.97 / row.per_row) << row.what;
  }
}

TEST(ServiceTime, SaysNothingBeforeItHasSeenEnough) {
  ServiceTime service;
  for (int i = 0; i < 20; ++i) {  // The first run of a size is not counted.
    EXPECT_FALSE(service.Mean(1).has_value());
    EXPECT_FALSE(service.P95(1).has_value());
    service.Add(1, absl::Milliseconds(1));
  }
  service.Add(1, absl::Milliseconds(1));
  EXPECT_EQ(service.samples(), 20);
  EXPECT_EQ(service.Mean(1), absl::Milliseconds(1));
}

TEST(ServiceTime, DoesNotCountTheFirstRunOfASize) {
  ServiceTime service;
  service.Add(1, absl::Seconds(5));  // Compiles kernels.
  for (int i = 0; i < 20; ++i) service.Add(1, absl::Milliseconds(1));
  EXPECT_EQ(service.Mean(1), absl::Milliseconds(1));
}

TEST(ServiceTime, LearnsTheLineFromNoisyRuns) {
  ServiceTime service;
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(1, 0.1);
  std::uniform_int_distribution<int64_t> rows(1, 32);
  for (int i = 0; i < 2000; ++i) {
    const int64_t b = rows(random);
    service.Add(b, noise(random) * Line(4, 0.5, b));
  }
  ASSERT_TRUE(service.line().has_value());
  EXPECT_NEAR(service.line()->fixed, 0.004, 0.0006);
  EXPECT_NEAR(service.line()->per_row, 0.0005, 0.00008);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*service.Mean(32)), 20, 2);
  EXPECT_GT(*service.P95(32), *service.Mean(32));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*service.P95(32)), 20 * 1.16, 2.5);
}

TEST(ServiceTime, PredictsTooShortRatherThanTooLongFromOneSize) {
  ServiceTime service;
  for (int i = 0; i < 30; ++i) service.Add(8, absl::Milliseconds(8));
  EXPECT_FALSE(service.line().has_value());
  EXPECT_EQ(service.Mean(8), absl::Milliseconds(8));
  EXPECT_EQ(service.Mean(64), absl::Milliseconds(8));
  EXPECT_EQ(service.Mean(4), absl::Milliseconds(4));
}

TEST(ServiceTime, HintsPredictBeforeAnyRunAndCountLittleAfterwards) {
  ServiceTime service;
  for (const int64_t rows : {1, 2, 4, 8}) service.Seed(rows, Line(4, 0.5, rows));
  ASSERT_TRUE(service.line().has_value());
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*service.Mean(8)), 8, 0.01);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*service.Mean(64)), 36, 0.1);
  EXPECT_EQ(*service.P95(8), *service.Mean(8));
  EXPECT_EQ(service.samples(), 0);
  EXPECT_TRUE(service.Learnt().empty()) << "hints are not handed on";
  for (int i = 0; i < 40; ++i) service.Add(8, absl::Milliseconds(80));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*service.Mean(8)), 80, 6);
  ASSERT_EQ(service.Learnt().size(), 1u);
  EXPECT_EQ(service.Learnt()[0].rows, 8);
}

TEST(ServiceTime, HintsThatMakeNoSenseCountForNothing) {
  ServiceTime service;
  service.Seed(0, absl::Milliseconds(1));
  service.Seed(-5, absl::Milliseconds(1));
  service.Seed(int64_t{1} << 60, absl::Milliseconds(1));
  service.Seed(1, absl::ZeroDuration());
  service.Seed(1, -absl::Seconds(1));
  service.Seed(1, absl::InfiniteDuration());
  EXPECT_FALSE(service.Mean(1).has_value());
  service.Seed(1, absl::Milliseconds(3));
  service.Seed(1, absl::Milliseconds(5));
  EXPECT_EQ(service.Mean(1), absl::Milliseconds(5)) << "the later one holds";
}

TEST(ServiceTime, ARunThatIsNothingLikeTheHintsEndsThem) {
  ServiceTime service;
  for (const int64_t rows : {1, 2, 4, 8}) service.Seed(rows, Line(4, 0.5, rows));
  service.Add(1, absl::Milliseconds(9));
  EXPECT_TRUE(service.Mean(1).has_value()) << "a busy machine";
  service.Add(2, absl::Milliseconds(400));
  EXPECT_EQ(service.Mean(1), std::nullopt);
  EXPECT_EQ(service.line(), std::nullopt);
  for (int i = 0; i < limits::kPredictionSamplesMin; ++i) service.Add(2, absl::Milliseconds(400));
  EXPECT_EQ(service.Mean(2), absl::Milliseconds(400)) << "as if there had been none";
}

TEST(ServiceTime, TinyRunsRefuteNothing) {
  ServiceTime service;
  service.Seed(1, absl::Microseconds(20));
  service.Add(1, absl::Microseconds(800));
  EXPECT_TRUE(service.Mean(1).has_value());
}

TEST(ServiceTime, AHintAfterRealRunsIsTooLate) {
  ServiceTime service;
  for (int i = 0; i < 30; ++i) service.Add(1, absl::Milliseconds(2));
  service.Seed(1, absl::Seconds(9));
  EXPECT_EQ(service.Mean(1), absl::Milliseconds(2));
}

TEST(ServiceTime, FollowsAModelThatBecomesSlower) {
  ServiceTime service;
  for (int i = 0; i < 5000; ++i) service.Add(1 + i % 2, Line(1, 1, 1 + i % 2));
  for (int i = 0; i < 100; ++i) service.Add(1 + i % 2, Line(3, 3, 1 + i % 2));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*service.Mean(1)), 6, 0.5);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*service.Mean(2)), 9, 0.7);
}

TEST(ServiceTime, TheLeastIsThatOfTheLastRuns) {
  ServiceTime service;
  service.Add(1, absl::Microseconds(1));  // The first run of a size is not counted.
  for (int i = 0; i < limits::kPredictionSamplesMin; ++i) {
    EXPECT_FALSE(service.Least(1).has_value());
    service.Add(1, absl::Milliseconds(200 + i));
  }
  EXPECT_EQ(service.Least(1), absl::Milliseconds(200));
  service.Add(1, absl::Milliseconds(80));
  EXPECT_EQ(service.Least(1), absl::Milliseconds(80)) << "at once";
  for (int i = 0; i < 40; ++i) service.Add(1, absl::Milliseconds(250));
  EXPECT_EQ(service.Least(1), absl::Milliseconds(250)) << "long ago";
}

TEST(ServiceTime, TheLeastIsOfItsSizeAndNeverOfHints) {
  ServiceTime service;
  service.Seed(1, absl::Milliseconds(5));
  for (int i = 0; i < 40; ++i) service.Add(8, absl::Milliseconds(80));
  EXPECT_EQ(service.Least(1), std::nullopt);
  EXPECT_EQ(service.Least(16), std::nullopt);
  EXPECT_EQ(service.Least(8), absl::Milliseconds(80));
  EXPECT_EQ(service.Least(6), absl::Milliseconds(60)) << "at least their share";
}

}  // namespace
}  // namespace tensord::sched
