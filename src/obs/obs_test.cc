// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>

#include <fstream>
#include <sstream>

#include "obs/log.h"
#include "obs/metric_docs.h"
#include "obs/metrics.h"

namespace tensord::obs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Log, ATextLineCannotBeForgedByItsValues) {
  const LogOptions options{.process = "front"};
  EXPECT_EQ(FormatLine(options, "T", Level::kWarn, "a\nb", {{"model", "x\x1b[31m\"y"}}),
            "T warning front: a\\nb model=x\\u001b[31m\\\"y");
}

TEST(Log, AJsonLineIsOneObject) {
  const LogOptions options{.json = true, .process = "front"};
  EXPECT_EQ(
      FormatLine(options, "T", Level::kInfo, "say \"hi\"", {{"version", "3"}}),
      R"({"time":"T","level":"info","process":"front","message":"say \"hi\"","version":"3"})");
}

TEST(Log, AnUnknownLevelNamesTheKnownOnes) {
  Level level{};
  EXPECT_THAT(std::string(ParseLevel("loud", &level).message()), HasSubstr("debug, info"));
  EXPECT_TRUE(ParseLevel("error", &level).ok());
  EXPECT_EQ(level, Level::kError);
}

TEST(Metrics, AnAnswerCountsUnderTensorFlowServingsNames) {
  Metrics metrics;
  ModelMetrics model(&metrics, "half");
  model.CountAnswer(absl::StatusCode::kOk, absl::Microseconds(50), /*rest=*/false);
  model.CountAnswer(absl::StatusCode::kNotFound, absl::Microseconds(50), /*rest=*/true);
  const std::string page = metrics.Page();
  EXPECT_THAT(page,
              HasSubstr(":tensorflow:serving:request_count{model_name=\"half\",status=\"OK\"} 1"));
  EXPECT_THAT(page, HasSubstr("status=\"NOT_FOUND\"} 1"));
  EXPECT_THAT(page, HasSubstr("request_latency_count{API=\"Predict\",entrypoint=\"GRPC\","
                              "model_name=\"half\"} 1"));
}

TEST(Metrics, ClearedGaugesLeaveThePage) {
  Metrics metrics;
  Set(metrics.Gauge(Metric::kQueueCalls, {"half", "1"}), 5);
  EXPECT_THAT(metrics.Page(), HasSubstr("tensord_queue_calls{"));
  metrics.ClearGauges(Metric::kQueueCalls);
  EXPECT_THAT(metrics.Page(), Not(HasSubstr("tensord_queue_calls{")));
}

TEST(MetricDocs, ThePageInTheTreeIsFresh) {
  std::ifstream file(TENSORD_SOURCE_DIR "/docs/metrics.md");
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), MetricDocs()) << "run: tensord docs metrics > docs/metrics.md";
}

}  // namespace
}  // namespace tensord::obs
