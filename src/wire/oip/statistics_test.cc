// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/statistics.h"

#include <gtest/gtest.h>

#include "tensord/open_inference.pb.h"

namespace tensord::wire {
namespace {

TEST(OipStatistics, AreTheSameInBothForms) {
  const OipStatistics versions[] = {{.name = "half",
                                     .version = 3,
                                     .rows = 12,
                                     .runs = 4,
                                     .success = {.count = 5, .nanoseconds = 600},
                                     .fail = {.count = 1, .nanoseconds = 20},
                                     .queue = {.count = 6, .nanoseconds = 30},
                                     .compute_infer = {.count = 6, .nanoseconds = 400}}};
  EXPECT_EQ(PrintOipStatistics(versions),
            R"({"model_stats":[{"name":"half","version":"3","inference_count":12,)"
            R"("execution_count":4,"inference_stats":{"success":{"count":5,"ns":600},)"
            R"("fail":{"count":1,"ns":20},"queue":{"count":6,"ns":30},)"
            R"("compute_input":{"count":0,"ns":0},"compute_infer":{"count":6,"ns":400},)"
            R"("compute_output":{"count":0,"ns":0}},"batch_stats":[]}]})");
  inference::ModelStatisticsResponse message;
  ASSERT_TRUE(message.ParseFromString(EncodeOipStatistics(versions)));
  ASSERT_EQ(message.model_stats_size(), 1);
  EXPECT_EQ(message.model_stats(0).version(), "3");
  EXPECT_EQ(message.model_stats(0).inference_count(), 12u);
  EXPECT_EQ(message.model_stats(0).inference_stats().compute_infer().ns(), 400u);
  EXPECT_EQ(PrintOipStatistics({}), R"({"model_stats":[]})");
}

}  // namespace
}  // namespace tensord::wire
