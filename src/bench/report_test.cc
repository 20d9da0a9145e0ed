// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/report.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "bench/json_text.h"
#include "bench/request.h"

namespace tensord::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ReportFacts kFacts{.server = "here:1",
                         .version = "1.2",
                         .command = "tensord bench",
                         .machine = {.cpu = "A CPU", .cpus = 4, .kernel = "6"}};

class Report : public ::testing::Test {
 protected:
  Report() {
    for (const char* name : {"a", "b"}) {
      mix_.kinds.push_back({.name = name, .variants = {Request()}});
    }
  }

  // A second in which `answered` requests took a millisecond each, and some were refused.
  Point MakePoint(uint64_t answered, uint64_t refused) {
    Point point;
    point.plan.mix = &mix_;
    LoadResult& result = point.result;
    result.duration = absl::Seconds(1);
    result.tally.kinds.resize(2);
    result.tally.answered = answered;
    result.answers_in_window = answered + refused;
    for (uint64_t i = 0; i < answered; ++i) result.tally.latency.Record(1'000'000);
    for (uint64_t i = 0; i < refused; ++i) {
      result.tally.CountFailure(1, 14, "no \"room\"\x01");
      result.tally.refusal.Record(50'000);
    }
    return point;
  }

  static google::protobuf::Struct Parsed(const std::string& json) {
    google::protobuf::Struct document;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &document).ok()) << json;
    return document;
  }

  Mix mix_;
};

TEST_F(Report, TimesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(ShortTime(0), "-");
  EXPECT_EQ(ShortTime(999), "999 ns");
  EXPECT_EQ(ShortTime(1'234), "1.23 us");
  EXPECT_EQ(ShortTime(45'600'000), "45.6 ms");
  EXPECT_EQ(ShortTime(7'890'000'000), "7.89 s");
}

TEST_F(Report, ErrorsAreCountedByCodeWithTheirFirstWords) {
  const Series series{.points = {MakePoint(97, 3)}};
  const std::string text = TextReport(kFacts, series);
  EXPECT_THAT(text, HasSubstr("97 answered (97.0/s), 3 failed (3.00 %)"));
  EXPECT_THAT(text, HasSubstr("3 x UNAVAILABLE, first: no \"room\""));
  EXPECT_THAT(text, HasSubstr("of refusals"));
  const auto document = Parsed(JsonReport(kFacts, series));
  const auto& errors = document.fields().at("errors").struct_value().fields();
  EXPECT_EQ(errors.at("UNAVAILABLE").struct_value().fields().at("count").number_value(), 3);
  EXPECT_EQ(errors.at("UNAVAILABLE").struct_value().fields().at("first").string_value(),
            "no \"room\"\x01");
}

TEST_F(Report, ASingleMeasurementIsOneObjectWithTheKeysThatScriptsRead) {
  const auto document = Parsed(JsonReport(kFacts, {.points = {MakePoint(10, 0)}}));
  for (const char* key :
       {"answered", "failed", "requests_per_second", "p50_us", "p90_us", "p99_us", "max_us",
        "cpu_us_per_request", "client_cpu_us_per_request", "cpu_us_per_request_by_process",
        "latency", "machine", "requests", "by_second"}) {
    EXPECT_TRUE(document.fields().contains(key)) << key;
  }
  EXPECT_NEAR(document.fields().at("p50_us").number_value(), 1'000, 1);
}

TEST_F(Report, OverloadIsGoodputByLoad) {
  Series series{.mode = SeriesMode::kOverload, .capacity = 200, .points = {MakePoint(200, 0)}};
  Point twice = MakePoint(190, 210);
  twice.factor = 2;
  twice.title = "2 x capacity";
  series.points.push_back(twice);
  const std::string text = TextReport(kFacts, series);
  EXPECT_THAT(text, HasSubstr("capacity 200.0/s"));
  EXPECT_THAT(text, HasSubstr("    2x      400.0      190.0       95.0"));
  EXPECT_THAT(text, HasSubstr("2 x capacity:\n210 x UNAVAILABLE"));
  const auto document = Parsed(JsonReport(kFacts, series));
  const auto& points = document.fields().at("points").list_value();
  EXPECT_EQ(points.values_size(), 2);
  EXPECT_EQ(points.values(1).struct_value().fields().at("goodput_of_capacity").number_value(),
            0.95);
}

TEST_F(Report, DoubtfulFiguresSaySo) {
  Point point = MakePoint(10, 0);
  EXPECT_THAT(TextReport(kFacts, {.points = {point}}), Not(HasSubstr("limit")));
  point.result.client_cpu = absl::Seconds(1);
  point.result.tally.lateness.Record(5'000'000);
  point.result.ended_early = "the server has gone";
  const std::string text = TextReport(kFacts, {.points = {point}});
  EXPECT_THAT(text, HasSubstr("may have been the limit"));
  EXPECT_THAT(text, HasSubstr("went out late (p99 5.00 ms)"));
  EXPECT_THAT(text, HasSubstr("ended early: the server has gone"));
}

TEST_F(Report, TalliesOfThreadsAddUp) {
  Tally sum = MakePoint(2, 1).result.tally;
  sum.Merge(MakePoint(3, 4).result.tally);
  EXPECT_EQ(sum.answered, 5u);
  EXPECT_EQ(sum.failed, 5u);
  EXPECT_EQ(sum.refused, 5u);
  EXPECT_EQ(sum.errors.at(14).count, 5u);
  EXPECT_EQ(sum.kinds[1].failed, 5u);
  EXPECT_EQ(sum.latency.count(), 5u);
}

TEST(Tally, WordsAreOneLine) {
  EXPECT_EQ(OneLine("{\n    \"error\": \"no\"\r\n}\n"), R"({ "error": "no" })");
}

TEST(JsonText, QuotesWhatJsonCannotHold) {
  EXPECT_EQ(Quoted("a\"b\\c\n\x80"), R"("a\"b\\c\u000a?")");
  EXPECT_EQ(JsonObject().Count("a", 1).Text("b", "c").Flag("d", true).Number("e", 0.5, 1).Done(),
            R"({"a": 1, "b": "c", "d": true, "e": 0.5})");
}

}  // namespace
}  // namespace tensord::bench
