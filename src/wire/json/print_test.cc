// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "base/text.h"
#include "wire/testing/golden.h"
#include "wire/testing/tensors.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using testing::GoldenCase;
using testing::GoldenLine;
using ::testing::HasSubstr;

// Cuts the first word off *text.
std::string TakeWord(std::string_view* text) {
  const size_t space = std::min(text->find(' '), text->size());
  const std::string word(text->substr(0, space));
  text->remove_prefix(std::min(space + 1, text->size()));
  return word;
}

void CheckCase(const GoldenCase& test) {
  std::deque<std::string> names;
  std::deque<tensor::Tensor> tensors;
  std::vector<tensor::NamedTensor> outputs;
  bool rows = false;
  for (const GoldenLine& line : test.lines) {
    rows |= line.word == "rows";
    if (line.word != "tensor") continue;
    std::string_view rest = line.rest;
    names.push_back(TakeWord(&rest));
    const DType dtype = testing::DTypeFromName(TakeWord(&rest));
    tensors.push_back(testing::FromText(dtype, rest));
    outputs.push_back({names.back(), tensors.back().view()});
  }
  const auto text = PrintPredictions(rows, outputs);
  const std::string_view error = test.Find("error");
  if (error.empty()) {
    ASSERT_TRUE(text.ok()) << test.name << ": " << text.status();
    EXPECT_EQ(*text, test.expect) << test.name;
    return;
  }
  const size_t space = error.find(' ');
  EXPECT_EQ(absl::StatusCodeToString(text.status().code()), error.substr(0, space)) << test.name;
  EXPECT_THAT(std::string(base::Message(text.status())),
              HasSubstr(std::string(error.substr(space + 1))))
      << test.name;
}

TEST(PrintPredictions, EveryAnswerIsLaidOutAsItsCaseSays) {
  const std::vector<GoldenCase> cases = testing::ReadGoldenCases("json_print.txt");
  ASSERT_GT(cases.size(), 20u);
  for (const GoldenCase& test : cases) CheckCase(test);
}

TEST(PrintPredictions, StringsKeepBytesThatAreNotUtf8) {
  const tensor::Tensor tensor = testing::MakeStrings({1}, {"\xff\x7f"});
  const tensor::NamedTensor outputs[] = {{"y", tensor.view()}};
  EXPECT_EQ(*PrintPredictions(true, outputs), "{\n    \"predictions\": [\"\xff\x7f\"\n    ]\n}");
}

TEST(PrintPredictions, AWorkersMalformedBytesAreAnInternalError) {
  const tensor::Tensor tensor = testing::MakeTensor<float>(DType::kFloat, {1}, {1});
  const tensor::NamedTensor short_bytes[] = {
      {"y", {DType::kFloat, tensor::Shape{2}, tensor.view().bytes}}};
  EXPECT_EQ(PrintPredictions(true, short_bytes).status().code(), absl::StatusCode::kInternal);
  const tensor::NamedTensor bad_strings[] = {
      {"y", {DType::kString, tensor::Shape{1}, tensor.view().bytes}}};
  EXPECT_EQ(PrintPredictions(true, bad_strings).status().code(), absl::StatusCode::kInternal);
}

TEST(PrintError, IsUtf8WhateverTheMessageQuotes) {
  EXPECT_EQ(PrintError("model \xff\xc3\xa9"), "{\n    \"error\": \"model ?\xc3\xa9\"\n}");
}

TEST(PrintError, EscapesTheMessage) {
  EXPECT_EQ(PrintError("a \"b\"\n\x1f\\/"), "{\n    \"error\": \"a \\\"b\\\"\\n\\u001F\\\\/\"\n}");
}

}  // namespace
}  // namespace tensord::wire
