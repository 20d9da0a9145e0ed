// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/infer_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/text.h"
#include "tensor/string_layout.h"
#include "tensord/open_inference.pb.h"
#include "wire/oip/datatype.h"
#include "wire/oip/infer_encode.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::Shape;
using testing::ElementsAre;
using testing::HasSubstr;

inference::ModelInferRequest RequestOf(const char* datatype, std::vector<int64_t> shape) {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  auto* const input = request.add_inputs();
  input->set_name("x");
  input->set_datatype(datatype);
  for (const int64_t dim : shape) input->add_shape(dim);
  return request;
}

std::string ErrorOf(const inference::ModelInferRequest& request) {
  const std::string body = request.SerializeAsString();
  const auto walked = WalkOipInfer(body);
  return walked.ok() ? "no error" : std::string(base::Message(walked.status()));
}

template <typename T>
std::vector<T> ValuesOf(const tensor::TensorView& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST(OipWalk, ParametersOfTheRequestSayHowUrgentItIs) {
  auto request = RequestOf("FP32", {0});
  auto& parameters = *request.mutable_parameters();
  parameters["timeout"].set_int64_param(7);
  parameters["priority"].set_uint64_param(UINT64_MAX);
  parameters["sequence_id"].set_string_param("");
  parameters["mine"].set_double_param(1);
  const std::string body = request.SerializeAsString();
  const auto walked = WalkOipInfer(body);
  ASSERT_TRUE(walked.ok()) << walked.status();
  EXPECT_EQ(walked->urgency.timeout_micros, 7u);
  EXPECT_EQ(walked->urgency.priority, UINT64_MAX);
  parameters["timeout"].set_int64_param(-1);
  EXPECT_THAT(ErrorOf(request), HasSubstr("the parameter timeout must be a whole number"));
  parameters["timeout"].set_double_param(7);
  EXPECT_THAT(ErrorOf(request), HasSubstr("the parameter timeout must be a whole number"));
  parameters["timeout"].Clear();
  EXPECT_THAT(ErrorOf(request), HasSubstr("the parameter timeout must be a whole number"));
  parameters.erase("timeout");
  parameters["sequence_id"].set_int64_param(3);
  EXPECT_THAT(ErrorOf(request), HasSubstr("sequence_id"));
}

TEST(OipWalk, ParametersOfTensorsThatAskForExtensionsAreRefused) {
  auto request = RequestOf("FP32", {0});
  (*request.mutable_inputs(0)->mutable_parameters())["mine"].set_bool_param(true);
  EXPECT_EQ(ErrorOf(request), "no error");
  (*request.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  EXPECT_THAT(ErrorOf(request), HasSubstr("shared_memory_region"));
  request = RequestOf("FP32", {0});
  (*request.add_outputs()->mutable_parameters())["classification"].set_int64_param(2);
  EXPECT_THAT(ErrorOf(request), HasSubstr("classification"));
}

TEST(OipWalk, RawInputsStayInTheBody) {
  auto request = RequestOf("FP32", {2});
  request.set_model_version("3");
  request.set_id("i");
  request.add_outputs()->set_name("y");
  (*request.mutable_parameters())["signature_name"].set_string_param("other");
  (*request.mutable_parameters())["priority"].set_uint64_param(1);
  const float values[] = {1, 2};
  request.add_raw_input_contents(values, sizeof(values));
  const std::string body = request.SerializeAsString();
  const auto walked = WalkOipInfer(body);
  ASSERT_TRUE(walked.ok()) << walked.status();
  EXPECT_EQ(walked->request.spec.name, "m");
  EXPECT_EQ(walked->request.spec.version, 3);
  EXPECT_EQ(walked->request.spec.signature_name, "other");
  EXPECT_EQ(walked->id, "i");
  EXPECT_TRUE(walked->raw);
  EXPECT_THAT(walked->request.output_filter, ElementsAre("y"));
  const tensor::TensorView& tensor = walked->request.inputs.at(0).tensor;
  EXPECT_THAT(ValuesOf<float>(tensor), ElementsAre(1, 2));
  const auto* const at = reinterpret_cast<const char*>(tensor.bytes.data());
  EXPECT_TRUE(at > body.data() && at < body.data() + body.size());
}

TEST(OipWalk, TypedContentsOfEveryTypeAreRead) {
  const auto walk = [](const char* datatype, auto add) {
    auto request = RequestOf(datatype, {2});
    add(request.mutable_inputs(0)->mutable_contents());
    static std::string body;  // Outlives the request.
    body = request.SerializeAsString();
    auto walked = WalkOipInfer(body);
    EXPECT_TRUE(walked.ok()) << datatype << ": " << walked.status();
    EXPECT_FALSE(walked->raw);
    return *std::move(walked);
  };
  const auto ints = [](auto* contents) {
    contents->add_int_contents(-3);
    contents->add_int_contents(4);
  };
  const auto unsigneds = [](auto* contents) {
    contents->add_uint_contents(3);
    contents->add_uint_contents(250);
  };
  EXPECT_THAT(ValuesOf<int8_t>(walk("INT8", ints).request.inputs[0].tensor), ElementsAre(-3, 4));
  EXPECT_THAT(ValuesOf<int16_t>(walk("INT16", ints).request.inputs[0].tensor), ElementsAre(-3, 4));
  EXPECT_THAT(ValuesOf<int32_t>(walk("INT32", ints).request.inputs[0].tensor), ElementsAre(-3, 4));
  EXPECT_THAT(ValuesOf<uint8_t>(walk("UINT8", unsigneds).request.inputs[0].tensor),
              ElementsAre(3, 250));
  EXPECT_THAT(ValuesOf<uint16_t>(walk("UINT16", unsigneds).request.inputs[0].tensor),
              ElementsAre(3, 250));
  EXPECT_THAT(ValuesOf<uint32_t>(walk("UINT32", unsigneds).request.inputs[0].tensor),
              ElementsAre(3, 250));
  const auto fp32 = walk("FP32", [](auto* contents) {
    contents->add_fp32_contents(0.5);
    contents->add_fp32_contents(1);
  });
  EXPECT_THAT(ValuesOf<float>(fp32.request.inputs[0].tensor), ElementsAre(0.5, 1));
  EXPECT_TRUE(fp32.request.decoded.empty());  // No copy.
  const auto flags = walk("BOOL", [](auto* contents) {
    contents->add_bool_contents(true);
    contents->add_bool_contents(false);
  });
  EXPECT_THAT(ValuesOf<uint8_t>(flags.request.inputs[0].tensor), ElementsAre(1, 0));
  const auto texts = walk("BYTES", [](auto* contents) {
    contents->add_bytes_contents("a");
    contents->add_bytes_contents("");
  });
  const auto strings = tensor::StringReader::Open(texts.request.inputs[0].tensor.bytes, 2);
  ASSERT_TRUE(strings.ok());
  EXPECT_EQ((*strings)[0], "a");
  EXPECT_EQ((*strings)[1], "");
}

TEST(OipWalk, WhatDoesNotFitIsSaidWithTheInputsName) {
  auto request = RequestOf("INT8", {1});
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(128);
  EXPECT_EQ(ErrorOf(request), "input \"x\": the value 128 is out of the range of INT8");
  request = RequestOf("FP32", {2});
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_THAT(ErrorOf(request), HasSubstr("fp32_contents holds 1 values where shape [2] needs 2"));
  request = RequestOf("FP32", {1});
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  EXPECT_THAT(ErrorOf(request), HasSubstr("FP32 values belong into fp32_contents"));
  request.add_raw_input_contents("1234");
  EXPECT_THAT(ErrorOf(request), HasSubstr("contents beside raw_input_contents"));
  request = RequestOf("FP16", {1});
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_THAT(ErrorOf(request), HasSubstr("FP16 has no typed contents"));
  request = RequestOf("FP32", {-1});
  EXPECT_THAT(ErrorOf(request), HasSubstr("input \"x\": "));
  request = RequestOf("FP32", {1});
  request.add_raw_input_contents("1234");
  request.add_raw_input_contents("1234");
  EXPECT_THAT(ErrorOf(request), HasSubstr("2 raw_input_contents for 1 inputs"));
  request = RequestOf("FP32", {1});
  request.set_model_version("one");
  EXPECT_THAT(ErrorOf(request), HasSubstr("\"one\" is not a number"));
  request.clear_model_name();
  EXPECT_THAT(ErrorOf(request), HasSubstr("names no model"));
  EXPECT_FALSE(WalkOipInfer("\xff\xff").ok());
}

// Of every dtype: what is answered is read by protobuf, and is what was sent.
TEST(OipEncode, AnswersAreReadByProtobufRawAndTyped) {
  const uint64_t bits[] = {0x0100010001000100, 0x0001000100010001};
  for (const DType dtype :
       {DType::kBool, DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16, DType::kInt32,
        DType::kUint32, DType::kInt64, DType::kUint64, DType::kHalf, DType::kBfloat16,
        DType::kFloat, DType::kDouble}) {
    const auto elements = static_cast<int64_t>(sizeof(bits) / tensor::ElementBytes(dtype));
    const std::span<const std::byte> bytes = std::as_bytes(std::span(bits));
    const std::vector<tensor::NamedTensor> outputs = {{"y", {dtype, Shape({elements}), bytes}}};
    for (const bool raw : {true, false}) {
      const auto encoded = EncodeOipResponse({.id = "7", .model = "m", .version = 2}, outputs, raw);
      ASSERT_TRUE(encoded.ok()) << encoded.status();
      inference::ModelInferResponse response;
      ASSERT_TRUE(response.ParseFromString(*encoded));
      EXPECT_EQ(response.model_version(), "2");
      EXPECT_EQ(response.id(), "7");
      EXPECT_EQ(response.outputs(0).datatype(), OipName(dtype));
      EXPECT_THAT(response.outputs(0).shape(), ElementsAre(elements));
      const bool halves = dtype == DType::kHalf || dtype == DType::kBfloat16;
      if (raw || halves) {
        ASSERT_EQ(response.raw_output_contents_size(), 1);
        EXPECT_EQ(response.raw_output_contents(0),
                  std::string(reinterpret_cast<const char*>(bits), sizeof(bits)));
        continue;
      }
      // Typed: sent back as a request, it is the same tensor again.
      auto request = RequestOf(std::string(OipName(dtype)).c_str(), {elements});
      *request.mutable_inputs(0)->mutable_contents() = response.outputs(0).contents();
      const std::string body = request.SerializeAsString();
      const auto walked = WalkOipInfer(body);
      ASSERT_TRUE(walked.ok()) << walked.status();
      const tensor::TensorView& again = walked->request.inputs.at(0).tensor;
      EXPECT_EQ(std::memcmp(again.bytes.data(), bits, sizeof(bits)), 0) << OipName(dtype);
    }
  }
}

TEST(OipEncode, WhatTheProtocolCannotNameIsRefusedAndWhatAWorkerGotWrongIsFound) {
  const float two[] = {1, 2};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(two));
  const OipAnswered answered{.id = "", .model = "m", .version = 1};
  const std::vector<tensor::NamedTensor> complex = {{"c", {DType::kComplex64, Shape({1}), bytes}}};
  EXPECT_EQ(EncodeOipResponse(answered, complex, true).status().code(),
            absl::StatusCode::kUnimplemented);
  const std::vector<tensor::NamedTensor> cut = {{"y", {DType::kFloat, Shape({3}), bytes}}};
  EXPECT_EQ(EncodeOipResponse(answered, cut, true).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace tensord::wire
