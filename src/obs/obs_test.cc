// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/limits.h"
#include "base/utf8.h"
#include "obs/log.h"
#include "obs/metric_docs.h"
#include "obs/metrics.h"
#include "obs/request_metrics.h"

namespace tensord::obs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Log, ATextLineCannotBeForgedByItsValues) {
  const LogOptions options{.process = "front"};
  EXPECT_EQ(FormatLine(options, "T", Level::kWarn, "a\nb", {{"model", "x\x1b[31m\"y"}}),
            "T warning front: a\\nb model=\"x\\u001b[31m\\\"y\"");
  EXPECT_EQ(FormatLine(options, "T", Level::kInfo, "m",
                       {{"a", "x identity=root"}, {"b", "c=d"}, {"e", ""}, {"f", "g"}}),
            "T info    front: m a=\"x identity=root\" b=\"c=d\" e=\"\" f=g");
  const std::string wide_blank = "x\xe3\x80\x80y";
  EXPECT_EQ(FormatLine(options, "T", Level::kInfo, "m", {{"a", wide_blank}}),
            "T info    front: m a=\"" + wide_blank + "\"");
}

TEST(Log, CharactersThatHideOrTurnTextAreEscaped) {
  EXPECT_EQ(Escape("a\xc2\x9b"
                   "31m\xe2\x80\xae"
                   "b\xe2\x81\xa6\xe2\x80\xa8"),
            "a\\u009b31m\\u202eb\\u2066\\u2028");
  // Letters, also next to those, stay.
  EXPECT_EQ(Escape("\xc2\xa0\xc3\xa9\xe2\x82\xac\xe2\x80\x99\xe2\x81\xaf\xc2"),
            "\xc2\xa0\xc3\xa9\xe2\x82\xac\xe2\x80\x99\xe2\x81\xaf\xc2");
}

TEST(Log, AJsonLineIsOneObject) {
  const LogOptions options{.json = true, .process = "front"};
  EXPECT_EQ(
      FormatLine(options, "T", Level::kInfo, "say \"hi\"", {{"version", "3"}}),
      R"({"time":"T","level":"info","process":"front","message":"say \"hi\"","version":"3"})");
}

TEST(Log, ALineIsUtf8WhateverItQuotes) {
  for (const bool json : {false, true}) {
    const LogOptions options{.json = json, .process = "front"};
    const std::string line =
        FormatLine(options, "T", Level::kInfo, "\xff", {{"v", "\xc3\xa9\xc3"}});
    EXPECT_EQ(line, base::ToUtf8(line));
    EXPECT_THAT(line, HasSubstr("\xc3\xa9?"));
  }
}

TEST(Log, AnUnknownLevelNamesTheKnownOnes) {
  Level level{};
  EXPECT_THAT(std::string(ParseLevel("loud", &level).message()), HasSubstr("debug, info"));
  EXPECT_TRUE(ParseLevel("error", &level).ok());
  EXPECT_EQ(level, Level::kError);
}

TEST(RequestMetrics, ARequestCountsUnderTensorFlowServingsNamesAndOurs) {
  Metrics metrics;
  RequestMetrics requests(&metrics);
  RequestFacts facts{.method = Method::kPredict, .total = absl::Microseconds(50)};
  requests.Model("half").Count(facts);
  requests.Version("half", 3)->Signature("serving_default")->Count(facts);
  facts.transport = Transport::kRest;
  facts.code = absl::StatusCode::kNotFound;
  requests.Model("half").Count(facts);
  const std::string page = metrics.Page();
  EXPECT_THAT(page,
              HasSubstr(":tensorflow:serving:request_count{model_name=\"half\",status=\"OK\"} 1"));
  EXPECT_THAT(page, HasSubstr("status=\"NOT_FOUND\"} 1"));
  EXPECT_THAT(page, HasSubstr("request_latency_count{model_name=\"half\",API=\"Predict\","
                              "entrypoint=\"GRPC\"} 1"));
  EXPECT_THAT(page, Not(HasSubstr("entrypoint=\"REST\"")));  // No success there.
  EXPECT_THAT(page, HasSubstr("tensord_requests_total{model_name=\"half\",version=\"3\","
                              "signature=\"serving_default\",method=\"Predict\","
                              "protocol=\"grpc\",status=\"OK\"} 1"));
}

TEST(RequestMetrics, WhatTheOriginalDoesNotCountIsNotInItsSeries) {
  Metrics metrics;
  ModelMetrics model(&metrics, "half");
  model.Count({.method = Method::kMultiInference, .rows = 3});
  model.Count({.method = Method::kGetModelStatus, .transport = Transport::kGrpc});
  model.Count({.method = Method::kOther, .transport = Transport::kRest});
  EXPECT_THAT(metrics.Page(), Not(HasSubstr("request_count{")));
  EXPECT_THAT(metrics.Page(), HasSubstr("request_example_count_total{model=\"half\"} 3"));
  model.Count({.method = Method::kGetModelMetadata, .transport = Transport::kRest});  // Of /v2/.
  EXPECT_THAT(metrics.Page(), Not(HasSubstr("request_count{")));
  model.Count({.method = Method::kGetModelStatus, .transport = Transport::kRest, .rest_api = true});
  EXPECT_THAT(metrics.Page(), HasSubstr("request_count{model_name=\"half\",status=\"OK\"} 1"));
  model.Count({.method = Method::kOther,
               .transport = Transport::kRest,
               .code = absl::StatusCode::kInvalidArgument,
               .rest_api = true});
  EXPECT_THAT(metrics.Page(),
              HasSubstr("request_count{model_name=\"half\",status=\"INVALID_ARGUMENT\"} 1"));
}

TEST(RequestMetrics, AnUnloadedVersionStaysOnThePageUntilOthersPushItOut) {
  Metrics metrics;
  RequestMetrics requests(&metrics);
  const RequestFacts facts{.method = Method::kPredict};
  const auto held = requests.Version("half", 1);
  held->Signature("a")->Count(facts);
  requests.Version("half", 2)->Signature("b")->Count(facts);
  for (int64_t version = 3; version < 3 + static_cast<int64_t>(limits::kMetricVersionsKept);
       ++version) {
    EXPECT_THAT(metrics.Page(), HasSubstr("version=\"2\""));
    requests.Version("half", version);
  }
  requests.Version("half", 1000);
  EXPECT_THAT(metrics.Page(), HasSubstr("version=\"1\""));
  EXPECT_THAT(metrics.Page(), Not(HasSubstr("version=\"2\"")));
}

TEST(Metrics, ThePageIsWrittenAsTheOriginalWritesIt) {
  Metrics metrics;
  Observe(metrics.Histogram(Metric::kRequestLatency, {"a\"b\\c\nd", "", "REST"}), 1500.5);
  Add(metrics.Counter(Metric::kGraphRuns, {}), 3);
  const std::string page = metrics.Page();
  EXPECT_THAT(page, HasSubstr("# TYPE :tensorflow:core:graph_runs counter\n"
                              ":tensorflow:core:graph_runs{} 3\n"));
  const std::string labels = "model_name=\"a\\\"b\\\\c\\nd\",API=\"\",entrypoint=\"REST\"";
  const std::string name = ":tensorflow:serving:request_latency";
  EXPECT_THAT(page, HasSubstr(name + "_bucket{" + labels + ",le=\"1102\"} 0\n"));
  EXPECT_THAT(page, HasSubstr(name + "_bucket{" + labels + ",le=\"1983.59\"} 1\n"));
  EXPECT_THAT(page, HasSubstr(name + "_bucket{" + labels + ",le=\"1.27482e+06\"} 1\n"));
  EXPECT_THAT(page, HasSubstr(name + "_bucket{" + labels + ",le=\"+Inf\"} 1\n"));
  EXPECT_THAT(page, HasSubstr(name + "_sum{" + labels + "} 1500.5\n"));
  EXPECT_THAT(page, HasSubstr(name + "_count{" + labels + "} 1\n"));
}

TEST(Metrics, ClearedGaugesLeaveThePage) {
  Metrics metrics;
  Set(metrics.Gauge(Metric::kQueueCalls, {"half", "1"}), 5);
  EXPECT_THAT(metrics.Page(), HasSubstr("tensord_queue_calls{"));
  metrics.Clear(Metric::kQueueCalls);
  EXPECT_THAT(metrics.Page(), Not(HasSubstr("tensord_queue_calls{")));
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsDeclared(std::string_view name) {
  return std::ranges::any_of(kMetrics, [name](const MetricRow& row) {
    if (!name.starts_with(row.name)) return false;
    const std::string_view rest = name.substr(row.name.size());
    const bool histogram = row.kind == MetricKind::kHistogram;
    return rest.empty() || (histogram && (rest == "_bucket" || rest == "_sum" || rest == "_count"));
  });
}

TEST(Dashboard, AsksForMetricsThatThereAreAlone) {
  const std::string text = ReadAll(TENSORD_SOURCE_DIR "/docs/grafana_dashboard.json");
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz_:";
  int found = 0;
  for (const std::string_view beginning : {"tensord_", ":tensorflow:"}) {
    for (size_t at = text.find(beginning); at != std::string::npos;
         at = text.find(beginning, at + 1)) {
      const size_t end = text.find_first_not_of(kNameCharacters, at);
      EXPECT_TRUE(IsDeclared(text.substr(at, end - at))) << text.substr(at, end - at);
      ++found;
    }
  }
  EXPECT_GT(found, 10);
}

TEST(MetricDocs, ThePageInTheTreeIsFresh) {
  EXPECT_EQ(ReadAll(TENSORD_SOURCE_DIR "/docs/metrics.md"), MetricDocs())
      << "run: tensord docs metrics > docs/metrics.md";
}

}  // namespace
}  // namespace tensord::obs
