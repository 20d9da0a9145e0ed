// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "wire/json/number.h"
#include "wire/testing/golden.h"
#include "wire/testing/tensors.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using ::testing::ElementsAre;
using testing::GoldenCase;
using testing::GoldenLine;
using ::testing::HasSubstr;

// "a:int32 b:float"
tensor::Signature SignatureOf(std::string_view text) {
  tensor::Signature signature;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const size_t colon = word.find(':');
    signature.inputs.push_back(testing::MakeEndpoint(
        word.substr(0, colon), testing::DTypeFromName(word.substr(colon + 1)), {}));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return signature;
}

absl::StatusOr<tensor::PredictRequest> Parse(std::string_view body,
                                             const tensor::Signature& signature) {
  const auto json = ScanJsonRequest(body);
  if (!json.ok()) return json.status();
  return JsonTensors(*json, signature);
}

void CheckError(const GoldenCase& test, const absl::Status& status, std::string_view rest) {
  const size_t space = rest.find(' ');
  EXPECT_EQ(absl::StatusCodeToString(status.code()), rest.substr(0, space)) << test.name;
  EXPECT_THAT(std::string(base::Message(status)), HasSubstr(std::string(rest.substr(space + 1))))
      << test.name;
}

void CheckCase(const GoldenCase& test) {
  const tensor::Signature signature = SignatureOf(test.Find("sig"));
  const std::string body(test.Find("in"));
  const auto request = Parse(body, signature);
  size_t outputs = 0;
  for (const GoldenLine& line : test.lines) {
    if (line.word == "error") CheckError(test, request.status(), line.rest);
    if (line.word != "out") continue;
    ASSERT_TRUE(request.ok()) << test.name << ": " << request.status();
    ASSERT_LT(outputs, request->inputs.size()) << test.name;
    const tensor::NamedTensor& input = request->inputs[outputs++];
    EXPECT_EQ(base::Cat(input.name, " ", testing::ToText(input.tensor)), line.rest) << test.name;
    const int index = signature.InputIndex(input.name);
    EXPECT_EQ(input.tensor.dtype, signature.inputs[static_cast<size_t>(index)].dtype);
  }
  if (request.ok()) {
    EXPECT_EQ(request->inputs.size(), outputs) << test.name;
    EXPECT_EQ(request->spec.signature_name, test.Find("signature")) << test.name;
  }
}

TEST(JsonRequest, EveryBodyBecomesTheTensorsOrTheErrorOfItsCase) {
  const std::vector<GoldenCase> cases = testing::ReadGoldenCases("json_predict.txt");
  ASSERT_GT(cases.size(), 100u);
  for (const GoldenCase& test : cases) {
    ASSERT_GE(test.lines.size(), 3u) << test.name;
    CheckCase(test);
  }
}

TEST(JsonRequest, AnEmptyBodyHasNoDocument) {
  EXPECT_THAT(std::string(base::Message(ScanJsonRequest("").status())),
              HasSubstr("The document is empty"));
}

TEST(JsonRequest, AByteOrderMarkIsSkipped) {
  const auto request = Parse("\xef\xbb\xbf{\"instances\":[1]}", SignatureOf("a:int32"));
  EXPECT_TRUE(request.ok()) << request.status();
}

TEST(JsonRequest, ABodyIsReadByItsLengthAndNotToAZeroByte) {
  const std::string longer = "{\"instances\":[1]}]}garbage";
  EXPECT_TRUE(Parse(std::string_view(longer).substr(0, 17), SignatureOf("a:int32")).ok());
  EXPECT_FALSE(Parse(std::string_view(longer).substr(0, 16), SignatureOf("a:int32")).ok());
  EXPECT_FALSE(Parse(std::string("{\"instances\":[\"\0\"]}", 19), SignatureOf("a:string")).ok());
}

TEST(JsonRequest, HalfAMillionBracketsInAnUnrelatedMemberAreSkipped) {
  const std::string deep = std::string(500000, '[') + std::string(500000, ']');
  const auto request =
      Parse(base::Cat("{\"x\":", deep, ",\"instances\":[1]}"), SignatureOf("a:int32"));
  EXPECT_TRUE(request.ok()) << request.status();
}

TEST(JsonRequest, HalfAMillionBracketsAsSignatureNameOrTensorAreRefused) {
  const std::string deep = std::string(500000, '[') + std::string(500000, ']');
  const auto name = ScanJsonRequest(base::Cat("{\"signature_name\":", deep, "}"));
  EXPECT_THAT(std::string(base::Message(name.status())), HasSubstr("must be a string value"));
  EXPECT_LT(base::Message(name.status()).size(), 400u) << "the excerpt is not cut";
  const auto tensor = Parse(base::Cat("{\"instances\":", deep, "}"), SignatureOf("a:int32"));
  EXPECT_THAT(std::string(base::Message(tensor.status())),
              HasSubstr("nested 500000 levels deep; the limit is 64"));
}

TEST(JsonRequest, NestingHasALimitEvenWhereItIsIgnored) {
  const std::string deep(limits::kJsonNestingMax + 1, '[');
  EXPECT_THAT(std::string(base::Message(ScanJsonRequest(base::Cat("{\"x\":", deep)).status())),
              HasSubstr("Nested deeper than"));
}

TEST(JsonRequest, RowsThatGrowBeyondTheFirstOneAreNeverWrittenOutOfRoom) {
  std::string body = "{\"instances\":[{\"a\":1,\"b\":1},{\"b\":2,\"a\":[";
  for (int i = 0; i < 1000; ++i) body += "1,";
  body += "1]}]}";
  const auto request = Parse(body, SignatureOf("a:int32 b:int32"));
  EXPECT_THAT(std::string(base::Message(request.status())),
              HasSubstr("Expecting tensor size: 1 but got: 1001"));
}

TEST(JsonRequest, AShortestTextOfEveryFloatReadsBackAsItself) {
  std::mt19937 random(7);
  std::string body = "{\"instances\":[";
  std::vector<uint32_t> expected;
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    if (!expected.empty()) body += ',';
    AppendReal(value, &body);
    expected.push_back(bits);
  }
  body += "]}";
  const auto request = Parse(body, SignatureOf("a:float"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(testing::ValuesOf<uint32_t>(request->inputs[0].tensor), expected);
}

TEST(JsonRequest, DecimalsAreRoundedOnceAsStrtodDoes) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 2000; ++i) {
    const std::string text =
        base::Cat(random(), ".", random(), "e", static_cast<int>(random() % 60) - 40);
    const auto request = Parse(base::Cat("{\"inputs\":", text, "}"), SignatureOf("a:double"));
    ASSERT_TRUE(request.ok()) << text;
    EXPECT_THAT(testing::ValuesOf<double>(request->inputs[0].tensor),
                ElementsAre(std::strtod(text.c_str(), nullptr)))
        << text;
    const auto single = Parse(base::Cat("{\"inputs\":", text, "}"), SignatureOf("a:float"));
    EXPECT_THAT(testing::ValuesOf<float>(single->inputs[0].tensor),
                ElementsAre(std::strtof(text.c_str(), nullptr)))
        << text;
  }
}

TEST(Half, EveryPatternReadsBackAsItself) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float half = HalfValue(pattern);
    if (!std::isnan(half)) {
      EXPECT_EQ(HalfBits(static_cast<double>(half)), pattern);
    }
    const float bfloat = Bfloat16Value(pattern);
    if (!std::isnan(bfloat)) {
      EXPECT_EQ(Bfloat16Bits(static_cast<double>(bfloat)), pattern);
    }
  }
}

TEST(Half, TiesGoToEven) {
  EXPECT_EQ(HalfBits(2049.0), HalfBits(2048.0));
  EXPECT_EQ(HalfBits(2051.0), HalfBits(2052.0));
  EXPECT_EQ(HalfBits(65519.99), 0x7bff);
  EXPECT_EQ(HalfBits(std::ldexp(1.0, -25)), 0);
  EXPECT_EQ(HalfBits(std::ldexp(1.5, -25)), 1);
}

// What the quick way takes and what it leaves to the careful way must not differ to a client.
TEST(JsonRequest, BadSyntaxIsFoundWhereverItStands) {
  const tensor::Signature signature = SignatureOf("x:float");
  for (const char* body : {
           R"({"instances": [1 2]})",
           R"({"instances": [1,]})",
           R"({"instances": [01]})",
           R"({"instances": [1]]})",
           R"({"instances": [[1, 2], [3, .4]]})",
           R"({"instances": [1], "instances": [1 2]})",
           R"({"instances": [1], "inputs": [1 2]})",
           R"({"instances": [1], "other": [1 2]})",
           R"({"instances": [[1], [nul]]})",
           R"({"instances": [1, 1e400]})",
       }) {
    const auto request = Parse(body, signature);
    ASSERT_FALSE(request.ok()) << body;
    EXPECT_THAT(std::string(base::Message(request.status())), HasSubstr("JSON Parse error"))
        << body;
    const auto scanned = ScanJsonRequest(body);
    EXPECT_FALSE(scanned.ok() && CheckSyntax(*scanned).ok()) << body;
  }
}

TEST(JsonRequest, BothWaysOfReadingAgree) {
  const tensor::Signature one = SignatureOf("x:float");
  const tensor::Signature two = SignatureOf("x:float y:int32");
  const std::vector<std::pair<const tensor::Signature*, std::string>> bodies = {
      {&one, R"({"instances":[1, 2.5, -3]})"},
      {&one, R"({"instances":[[1,2],[3,4]]})"},
      {&one, R"({"instances":[[1,2],[3]]})"},
      {&one, R"({"instances":[[[1e3]],[[NaN]]]})"},
      {&one, R"({"instances":[[],[]]})"},
      {&one, R"({"instances":[1,[2]]})"},
      {&one, R"({"instances":[1e39]})"},
      {&one, R"({"instances":[{"x":[1,2]},{"x":[3,4]}]})"},
      {&one, R"({"instances":[{"x":[1,2]},{"x":[3]}]})"},
      {&one, R"({"instances":[{"x":1},{"x":2}]})"},
      {&one, R"({"instances":[{"x":[1]},{"x":["a"]}]})"},
      {&one, R"({"inputs":{"x":[[1,2],[3,4]]}})"},
      {&one, R"({"inputs":[[1,2],[3,4]]})"},
      {&one, R"({"inputs":5})"},
      {&two, R"({"instances":[{"x":[1,2],"y":3},{"y":4,"x":[5,6]}]})"},
      {&two, R"({"instances":[{"x":[1,2],"y":[3]},{"y":[4],"x":[5,6]}]})"},
      {&two, R"({"instances":[{"x":[1,2],"y":[3.5]}]})"},
      {&two, R"({"inputs":{"x":[1.5],"y":[1,2],"z":[3]}})"},
      {&two, R"({"inputs":{"x":[1.5],"y":[1,2],"z":["a",{"b":[1]}]}})"},
  };
  for (const auto& [signature, body] : bodies) {
    const auto quick = Parse(body, *signature);
    auto checked = ScanJsonRequest(body);
    ASSERT_TRUE(checked.ok()) << body;
    checked->unchecked_lists = 0;  // As if all of it had been looked at.
    const auto careful = JsonTensors(*checked, *signature);
    ASSERT_EQ(quick.status(), careful.status()) << body;
    if (!quick.ok()) continue;
    ASSERT_EQ(quick->inputs.size(), careful->inputs.size()) << body;
    for (size_t i = 0; i < quick->inputs.size(); ++i) {
      EXPECT_EQ(quick->inputs[i].name, careful->inputs[i].name) << body;
      EXPECT_EQ(quick->inputs[i].tensor.shape, careful->inputs[i].tensor.shape) << body;
      EXPECT_TRUE(
          std::ranges::equal(quick->inputs[i].tensor.bytes, careful->inputs[i].tensor.bytes))
          << body;
    }
  }
}

}  // namespace
}  // namespace tensord::wire
