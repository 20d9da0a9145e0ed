// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "tensord/example.pb.h"
#include "wire/testing/tensors.h"

namespace tensord::wire {
namespace {

namespace tf = ::tensorflow;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<tensor::Tensor> Read(std::string_view body) {
  const auto request = ScanJsonRequest(body);
  if (!request.ok()) return request.status();
  return JsonExamples(*request);
}

// The features of each example; empty (and a failed test) when the body is refused.
std::vector<tf::Example> Examples(std::string_view body) {
  const auto tensor = Read(body);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  std::vector<tf::Example> examples;
  if (!tensor.ok()) return examples;
  for (const std::string& bytes : testing::StringsOf(tensor->view())) {
    EXPECT_TRUE(examples.emplace_back().ParseFromString(bytes));
  }
  return examples;
}

std::string Refusal(std::string_view body) {
  const auto tensor = Read(body);
  return tensor.ok() ? "" : std::string(base::Message(tensor.status()));
}

const tf::Feature& Of(const tf::Example& example, const std::string& name) {
  return example.features().feature().at(name);
}

TEST(JsonExamples, TheFirstValueDecidesTheKind) {
  const auto examples = Examples(
      R"({"examples": [{"i": 20, "is": [5, true, false], "f": 8.0, "fs": [1.5, 1e2],
                        "s": "text", "b": ["a", {"b64": "Yg=="}]}, {"i": [-3]}]})");
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_THAT(Of(examples[0], "i").int64_list().value(), ElementsAre(20));
  EXPECT_THAT(Of(examples[0], "is").int64_list().value(), ElementsAre(5, 1, 0));
  EXPECT_THAT(Of(examples[0], "f").float_list().value(), ElementsAre(8.f));
  EXPECT_THAT(Of(examples[0], "fs").float_list().value(), ElementsAre(1.5f, 100.f));
  EXPECT_THAT(Of(examples[0], "s").bytes_list().value(), ElementsAre("text"));
  EXPECT_THAT(Of(examples[0], "b").bytes_list().value(), ElementsAre("a", "b"));
  EXPECT_THAT(Of(examples[1], "i").int64_list().value(), ElementsAre(-3));
}

TEST(JsonExamples, NumbersThatAreNotFiniteAreFloats) {
  const auto examples = Examples(R"({"examples": [{"f": [NaN, Infinity, -Infinity, 1e-50]}]})");
  ASSERT_EQ(examples.size(), 1u);
  const auto& values = Of(examples[0], "f").float_list().value();
  ASSERT_EQ(values.size(), 4);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], INFINITY);
  EXPECT_EQ(values[2], -INFINITY);
  EXPECT_EQ(values[3], 0.f);
}

TEST(JsonExamples, IntegersReachBothEndsOfInt64) {
  const auto examples =
      Examples(R"({"examples": [{"i": [9223372036854775807, -9223372036854775808]}]})");
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_THAT(Of(examples[0], "i").int64_list().value(), ElementsAre(INT64_MAX, INT64_MIN));
}

TEST(JsonExamples, AContextComesBeforeEachExample) {
  const auto examples =
      Examples(R"({"context": {"c": 7, "x": 1}, "examples": [{"x": 2}, {"y": "z"}]})");
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_THAT(Of(examples[0], "c").int64_list().value(), ElementsAre(7));
  EXPECT_THAT(Of(examples[0], "x").int64_list().value(), ElementsAre(2));
  EXPECT_THAT(Of(examples[1], "x").int64_list().value(), ElementsAre(1));
}

TEST(JsonExamples, AnEmptyListIsAFeatureWithoutAKindAndTheLastOfANameCounts) {
  const auto examples = Examples(R"({"examples": [{"e": [], "x": 1, "x": "two"}, {}]})");
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(Of(examples[0], "e").kind_case(), tf::Feature::KIND_NOT_SET);
  EXPECT_THAT(Of(examples[0], "x").bytes_list().value(), ElementsAre("two"));
  EXPECT_EQ(examples[1].features().feature_size(), 0);
}

TEST(JsonExamples, RefusesInTheOriginalWords) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {R"({})", "When method is classify, key 'examples' is expected and was not found"},
      {R"({"examples": {}})", "Expecting 'examples' value to be an list/array"},
      {R"({"examples": []})", "'examples' value is an empty array"},
      {R"({"examples": [[{"x": 1}]]})", "Example must be JSON object but got JSON Array"},
      {R"({"examples": [{}], "context": [1]})", "Example must be JSON object but got JSON Array"},
      {R"({"examples": [{"x": [3, null]}]})", "unexpected JSON type: Null"},
      {R"({"examples": [{"x": null}]})", "Feature: x has element with unexpected JSON type: Null"},
      {R"({"examples": [{"x": [3, 3.0]}]})",
       "Unexpected element type in feature: x expecting type: int64"},
      {R"({"examples": [{"x": [3.0, 3]}]})", "expecting type: float"},
      {R"({"examples": [{"x": ["s", 3]}]})", "expecting type: bytes"},
      {R"({"examples": [{"x": [3, {"k": 1}]}]})", "unexpected JSON type: Object"},
      {R"({"examples": [{"x": [[3], 4]}]})", "unexpected JSON type: Array"},
      {R"({"examples": [{"x": [3, 18446744073709551615]}]})", "Only int64_t is supported"},
      {R"({"examples": [{"x": {"b64": "!"}}]})", "Unable to base64 decode"},
      {R"({"signature_name": [1], "examples": [{}]})", "must be a string value"},
      {R"([])", "Is not object"},
  };
  for (const auto& [body, words] : rows) {
    EXPECT_THAT(Refusal(body), HasSubstr(std::string(words))) << body;
  }
}

TEST(JsonExamples, SaysWhichExampleIsWrong) {
  EXPECT_THAT(Refusal(R"({"examples": [{"x": 1}, {"x": null}]})"), HasSubstr("(at examples[1])"));
}

}  // namespace
}  // namespace tensord::wire
