// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/load.h"
#include "bench/process_cpu.h"
#include "bench/request.h"

namespace tensord::bench {
namespace {

using ::testing::HasSubstr;

TEST(ProcessCpu, AProgramNamedLikeAStatLineIsReadAllTheSame) {
  const auto stat = ParseStat("7 (a) S 1 (x) R 42 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0", 100);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->parent, 42);
  EXPECT_EQ(stat->cpu, absl::Seconds(2));
  EXPECT_FALSE(ParseStat("7 (a", 100).has_value());
}

TEST(ProcessCpu, ARoleThatAppearedCountsFromZero) {
  const CpuByRole used = Used({{"front", absl::Seconds(1)}},
                              {{"front", absl::Seconds(3)}, {"worker", absl::Seconds(1)}});
  EXPECT_EQ(used.at("front"), absl::Seconds(2));
  EXPECT_EQ(used.at("worker"), absl::Seconds(1));
}

TEST(LoadResult, QuantilesComeFromTheSortedLatencies) {
  LoadResult result;
  EXPECT_EQ(result.Quantile(0.5), absl::ZeroDuration());
  result.latencies_us = {1, 2, 3, 4, 100};
  EXPECT_EQ(result.Quantile(0.5), absl::Microseconds(3));
  EXPECT_EQ(result.Quantile(1), absl::Microseconds(100));
}

TEST(Request, AnInputIsWrittenAsNameTypeAndDims) {
  const auto input = ParseInput("x:float:1,2");
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(MakePredictJson("", {*input}), R"({"inputs":{"x":[[0.5,0.5]]}})");
  EXPECT_THAT(MakePredictRequest("half", "", {*input}), HasSubstr("half"));
  EXPECT_FALSE(ParseInput("x:floaty:1").ok());
  EXPECT_FALSE(ParseInput("x:float:1,b").ok());
  EXPECT_FALSE(ParseInput("x").ok());
}

TEST(Load, NobodyListeningIsSaidWithThePort) {
  LoadPlan plan;
  plan.target.port = 1;
  const auto result = RunLoad(plan, nullptr);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace tensord::bench
