// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/infer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/text.h"
#include "tensor/string_layout.h"
#include "wire/oip/infer_print.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::Shape;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<OipRequest> Parse(const std::string& json, const std::string& binary = "") {
  static std::string body;  // Outlives the request.
  body = json + binary;
  return ParseOipInfer(body, json.size());
}

std::string ErrorOf(const std::string& json, const std::string& binary = "") {
  const auto request = Parse(json, binary);
  return request.ok() ? "no error" : std::string(base::Message(request.status()));
}

// A request with one input, of which the test says the rest.
std::string WithInput(std::string_view members) {
  return base::Cat(R"({"inputs": [{"name": "x", )", members, "}]}");
}

template <typename T>
std::vector<T> ValuesOf(const tensor::TensorView& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST(OipJson, ATensorMayBeFlatOrNestedAsItsShape) {
  for (const char* data : {"[1, 2.5, 3, 4]", "[[1, 2.5], [3, 4]]"}) {
    const auto request =
        Parse(WithInput(base::Cat(R"("datatype": "FP32", "shape": [2, 2], "data": )", data)));
    ASSERT_TRUE(request.ok()) << request.status();
    const tensor::NamedTensor& input = request->request.inputs.at(0);
    EXPECT_EQ(input.name, "x");
    EXPECT_EQ(input.tensor.dtype, DType::kFloat);
    EXPECT_EQ(input.tensor.shape, Shape({2, 2}));
    EXPECT_THAT(ValuesOf<float>(input.tensor), ElementsAre(1, 2.5, 3, 4));
  }
}

TEST(OipJson, ParametersOfTheRequestSayHowUrgentItIs) {
  const auto with = [](std::string_view parameters) {
    return base::Cat(R"({"parameters": )", parameters, R"(, "inputs": []})");
  };
  const auto request =
      Parse(with(R"({"time\u006fut": 7, "priority": 18446744073709551615, "my": [1]})"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->urgency.timeout_micros, 7u);
  EXPECT_EQ(request->urgency.priority, UINT64_MAX);
  for (const char* bad :
       {"-1", "1.5", "1e3", "18446744073709551616", "true", "\"1\"", "null", "[]"}) {
    EXPECT_THAT(ErrorOf(with(base::Cat(R"({"timeout": )", bad, "}"))),
                HasSubstr("the parameter timeout must be a whole number"))
        << bad;
  }
  EXPECT_THAT(ErrorOf(with(R"({"sequence_id": "a"})")), HasSubstr("sequence_id"));
  EXPECT_TRUE(Parse(with(R"({"sequence_id": 0, "sequence_end": false})")).ok());
}

TEST(OipJson, EveryDatatypeHasAForm) {
  const struct {
    const char* datatype;
    const char* data;
    DType dtype;
    size_t bytes;
  } kCases[] = {
      {"BOOL", "[true, false]", DType::kBool, 2},
      {"UINT8", "[0, 255]", DType::kUint8, 2},
      {"UINT16", "[0, 65535]", DType::kUint16, 4},
      {"UINT32", "[0, 4294967295]", DType::kUint32, 8},
      {"UINT64", "[0, 18446744073709551615]", DType::kUint64, 16},
      {"INT8", "[-128, 127]", DType::kInt8, 2},
      {"INT16", "[-32768, 32767]", DType::kInt16, 4},
      {"INT32", "[-2147483648, 2147483647]", DType::kInt32, 8},
      {"INT64", "[-9223372036854775808, 9223372036854775807]", DType::kInt64, 16},
      {"FP16", "[0.5, -2]", DType::kHalf, 4},
      {"BF16", "[0.5, -2]", DType::kBfloat16, 4},
      {"FP32", "[0.5, -2e10]", DType::kFloat, 8},
      {"FP64", "[0.1, 1e300]", DType::kDouble, 16},
      {"BYTES", R"(["a", "b\u00fc"])", DType::kString, 24 + 4},
  };
  for (const auto& c : kCases) {
    const auto request = Parse(WithInput(
        base::Cat(R"("shape": [2], "datatype": ")", c.datatype, R"(", "data": )", c.data)));
    ASSERT_TRUE(request.ok()) << c.datatype << ": " << request.status();
    EXPECT_EQ(request->request.inputs.at(0).tensor.dtype, c.dtype);
    EXPECT_EQ(request->request.inputs.at(0).tensor.bytes.size(), c.bytes) << c.datatype;
  }
}

TEST(OipJson, BinaryTensorsStayInTheBodyAndComeInTheOrderOfTheInputs) {
  const std::string binary = BytesOf<float>({1, 2}) + std::string("\x01\x00\x00\x00z", 5);
  const std::string json = R"({"inputs": [
      {"name": "x", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}},
      {"name": "j", "shape": [1], "datatype": "INT32", "data": [7]},
      {"name": "s", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}]})";
  const std::string body = json + binary;
  const auto request = ParseOipInfer(body, json.size());
  ASSERT_TRUE(request.ok()) << request.status();
  const auto& inputs = request->request.inputs;
  EXPECT_EQ(static_cast<const void*>(inputs.at(0).tensor.bytes.data()), body.data() + json.size());
  EXPECT_THAT(ValuesOf<float>(inputs.at(0).tensor), ElementsAre(1, 2));
  EXPECT_THAT(ValuesOf<int32_t>(inputs.at(1).tensor), ElementsAre(7));
  const auto strings = tensor::StringReader::Open(inputs.at(2).tensor.bytes, 1);
  ASSERT_TRUE(strings.ok());
  EXPECT_EQ((*strings)[0], "z");
}

TEST(OipJson, IdParametersAndOutputsAreRead) {
  const auto request = Parse(R"({"id": "a\"7", "parameters": {"signature_name": "other",
      "binary_data_output": true, "sequence_id": 0, "priority": 0}, "inputs": [],
      "outputs": [{"name": "y"}, {"name": "z", "parameters": {"binary_data": false}}]})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->id, "a\"7");
  EXPECT_EQ(request->request.spec.signature_name, "other");
  EXPECT_THAT(request->request.output_filter, ElementsAre("y", "z"));
  EXPECT_THAT(request->binary, ElementsAre(true, false));
  EXPECT_TRUE(request->binary_default);
}

TEST(OipJson, ViewsOutliveAMove) {
  auto request = Parse(WithInput(R"("datatype": "INT8", "shape": [1], "data": [5])"));
  ASSERT_TRUE(request.ok());
  const OipRequest moved = *std::move(request);
  EXPECT_EQ(moved.request.inputs.at(0).name, "x");
  EXPECT_THAT(ValuesOf<int8_t>(moved.request.inputs.at(0).tensor), ElementsAre(5));
}

TEST(OipJson, EmptyAndScalarTensorsAreTensors) {
  auto request = Parse(WithInput(R"("datatype": "FP32", "shape": [0, 3], "data": [])"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->request.inputs.at(0).tensor.shape, Shape({0, 3}));
  request = Parse(WithInput(R"("datatype": "FP32", "shape": [], "data": [4])"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->request.inputs.at(0).tensor.shape, Shape());
}

TEST(OipJson, WhatDoesNotFitIsSaidWithTheInputsName) {
  const std::string fp32 = R"("datatype": "FP32", )";
  EXPECT_EQ(ErrorOf(WithInput(fp32 + R"("shape": [3], "data": [1, 2])")),
            "input \"x\": data holds 2 values where shape [3] needs 3");
  EXPECT_THAT(ErrorOf(WithInput(fp32 + R"("shape": [4], "data": [[1, 2], [3, 4]])")),
              HasSubstr("data is nested as [2,2] where shape says [4]"));
  EXPECT_THAT(ErrorOf(WithInput(fp32 + R"("shape": [2], "data": [1, "a"])")),
              HasSubstr("input \"x\": data[1]: JSON Value: \"a\""));
  EXPECT_THAT(ErrorOf(WithInput(fp32 + R"("shape": [1], "data": [null])")),
              HasSubstr("Type: Null is not of expected type: float"));
  EXPECT_THAT(ErrorOf(WithInput(R"("datatype": "INT8", "shape": [1], "data": [128])")),
              HasSubstr("out of range"));
  EXPECT_THAT(ErrorOf(WithInput(R"("datatype": "FP8", "shape": [1], "data": [1])")),
              HasSubstr("datatype FP8 is not known"));
  EXPECT_THAT(ErrorOf(WithInput(fp32 + R"("shape": [-1], "data": [1])")),
              HasSubstr("must be a whole number, not -1"));
  EXPECT_THAT(ErrorOf(WithInput(fp32 + R"("shape": [4294967296, 4294967296], "data": [1])")),
              HasSubstr("above the limit"));
  EXPECT_THAT(ErrorOf(WithInput(fp32 + R"("shape": [1], "data": 1)")),
              HasSubstr("data must be a list"));
  EXPECT_THAT(ErrorOf(WithInput(fp32 + R"("shape": [1])")),
              HasSubstr("has neither data nor the parameter binary_data_size"));
}

TEST(OipJson, OnlyStrictJsonIsTaken) {
  const std::string nan = WithInput(R"("datatype": "FP32", "shape": [1], "data": [NaN])");
  EXPECT_THAT(ErrorOf(nan), HasSubstr("NaN and Infinity are no JSON numbers"));
  EXPECT_THAT(ErrorOf(R"({"inputs": [], "extra": [-Infinity]})"), HasSubstr("no JSON numbers"));
  EXPECT_EQ(ErrorOf(R"({"inputs": [], "id": "NaN \" Infinity"})"), "no error");
  EXPECT_THAT(ErrorOf(R"({"inputs": []} x)"), HasSubstr("more behind the request's object"));
  EXPECT_THAT(ErrorOf(R"({"inputs": [], "inputs": []})"), HasSubstr("inputs is given twice"));
  EXPECT_THAT(ErrorOf(WithInput(R"("datatype": "FP32", "shape": [1], "data": [1,])")),
              HasSubstr("JSON Parse error"));
  EXPECT_THAT(ErrorOf(WithInput(R"("datatype": "FP32", "shape": [1], "data": [01])")),
              HasSubstr("JSON Parse error"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("the request must be a JSON object"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("the request must be a JSON object"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("no member \"inputs\""));
  EXPECT_THAT(ErrorOf(R"({"inputs": [{}]})"), HasSubstr("inputs[0] has no name"));
}

TEST(OipJson, BinarySizesMustAddUp) {
  const std::string four =
      WithInput(R"("datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4})");
  EXPECT_EQ(ErrorOf(four, "1234"), "no error");
  EXPECT_THAT(ErrorOf(four, "123"), HasSubstr("binary_data_size is 4 where 3 bytes are left"));
  EXPECT_THAT(ErrorOf(four, "12345"), HasSubstr("1 bytes of binary data are left over"));
  EXPECT_THAT(ErrorOf(WithInput(R"("datatype": "FP64", "shape": [1],
                                   "parameters": {"binary_data_size": 4})"),
                      "1234"),
              HasSubstr("there are 4 bytes where FP64 of shape [1] needs 8"));
  const std::string text =
      WithInput(R"("datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6})");
  EXPECT_EQ(ErrorOf(text, std::string("\x02\x00\x00\x00zz", 6)), "no error");
  EXPECT_THAT(ErrorOf(text, std::string("\x09\x00\x00\x00zz", 6)), HasSubstr("are not 1 strings"));
}

TEST(OipJson, ExtensionsThatAreNotServedAreRefused) {
  const auto request = Parse(R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1],
      "parameters": {"shared_memory_region": "r"}}]})");
  EXPECT_EQ(request.status().code(), absl::StatusCode::kUnimplemented);
}

TEST(OipJson, TheHeaderTellsWhereTheTextEnds) {
  EXPECT_EQ(*OipJsonBytes(std::nullopt, 9), 9);
  EXPECT_EQ(*OipJsonBytes("4", 9), 4);
  for (const char* bad : {"10", "-1", "", "4x", "99999999999999999999"}) {
    EXPECT_FALSE(OipJsonBytes(bad, 9).ok()) << bad;
  }
}

// ---- Answers -----------------------------------------------------------------------------------

template <typename T>
tensor::TensorView ViewOf(DType dtype, const std::vector<T>& values) {
  return {dtype, Shape({static_cast<int64_t>(values.size())}),
          std::as_bytes(std::span<const T>(values))};
}

TEST(OipPrint, AnAnswerIsStrictJson) {
  const std::vector<float> floats = {1, 0.5f, -3e20f};
  const std::vector<uint8_t> bools = {0, 1};
  const std::vector<tensor::NamedTensor> outputs = {{"y", ViewOf(DType::kFloat, floats)},
                                                    {"b", ViewOf(DType::kBool, bools)}};
  const auto body = PrintOipResponse({.id = "7", .model = "m", .version = 3}, outputs,
                                     {false, false}, NonFinite::kError);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->text, R"({"id":"7","model_name":"m","model_version":"3","outputs":[)"
                        R"({"name":"y","datatype":"FP32","shape":[3],"data":[1.0,0.5,-3e+20]},)"
                        R"({"name":"b","datatype":"BOOL","shape":[2],"data":[false,true]}]})");
  EXPECT_FALSE(body->json_bytes.has_value());
}

TEST(OipPrint, BinaryOutputsFollowTheText) {
  const std::vector<int32_t> numbers = {1, 2};
  const std::vector<tensor::NamedTensor> outputs = {{"y", ViewOf(DType::kInt32, numbers)},
                                                    {"z", ViewOf(DType::kInt32, numbers)}};
  const auto body = PrintOipResponse({.id = "", .model = "m", .version = 1}, outputs, {true, false},
                                     NonFinite::kError);
  ASSERT_TRUE(body.ok()) << body.status();
  ASSERT_TRUE(body->json_bytes.has_value());
  EXPECT_THAT(body->text.substr(0, *body->json_bytes),
              HasSubstr(R"("shape":[2],"parameters":{"binary_data_size":8}})"));
  EXPECT_EQ(body->text.substr(*body->json_bytes), BytesOf(numbers));
}

TEST(OipPrint, NonFiniteValuesAreAnErrorOrNull) {
  const std::vector<float> odd = {1, std::numeric_limits<float>::quiet_NaN(),
                                  -std::numeric_limits<float>::infinity()};
  const std::vector<tensor::NamedTensor> outputs = {{"y", ViewOf(DType::kFloat, odd)}};
  const OipAnswered answered{.id = "", .model = "m", .version = 1};
  const auto error = PrintOipResponse(answered, outputs, {false}, NonFinite::kError);
  EXPECT_EQ(error.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(base::Message(error.status())), HasSubstr("output \"y\" holds NaN"));
  const auto null = PrintOipResponse(answered, outputs, {false}, NonFinite::kNull);
  ASSERT_TRUE(null.ok());
  EXPECT_THAT(null->text, HasSubstr("[1.0,null,null]"));
  EXPECT_TRUE(PrintOipResponse(answered, outputs, {true}, NonFinite::kError).ok());
}

TEST(OipPrint, BytesThatAreNoTextAreRefusedAsJson) {
  std::vector<std::byte> packed(tensor::PackedStringBytes(1, 1));
  tensor::StringWriter(packed, 1).Add("\xff");
  const std::vector<tensor::NamedTensor> outputs = {{"s", {DType::kString, Shape({1}), packed}}};
  const OipAnswered answered{.id = "", .model = "m", .version = 1};
  const auto body = PrintOipResponse(answered, outputs, {false}, NonFinite::kError);
  EXPECT_THAT(std::string(base::Message(body.status())), HasSubstr("is not UTF-8"));
  EXPECT_TRUE(PrintOipResponse(answered, outputs, {true}, NonFinite::kError).ok());
}

}  // namespace
}  // namespace tensord::wire
