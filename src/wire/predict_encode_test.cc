// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/predict_encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensord/predict.pb.h"
#include "wire/tensor_walk.h"
#include "wire/testing/tensors.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::NamedTensor;
using tensor::Shape;
using ::testing::ElementsAre;
using testing::MakeStrings;
using testing::MakeTensor;
namespace tf = ::tensorflow;

const tensor::ModelSpec kAnswered{
    .name = "half", .version = 123, .version_label = "", .signature_name = "serving_default"};

tf::serving::PredictResponse Parse(const absl::StatusOr<std::string>& bytes) {
  tf::serving::PredictResponse response;
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (bytes.ok()) {
    EXPECT_TRUE(response.ParseFromString(*bytes));
    EXPECT_EQ(response.ByteSizeLong(), bytes->size()) << "not the canonical encoding";
  }
  return response;
}

tf::TensorProto EncodeOne(const tensor::Tensor& tensor, bool as_content) {
  const NamedTensor outputs[] = {{"y", tensor.view()}};
  return Parse(EncodePredictResponse(kAnswered, outputs, as_content)).outputs().at("y");
}

TEST(EncodePredictResponse, CarriesTheVersionAndSignatureThatAnswered) {
  const tensor::Tensor y = MakeTensor<float>(DType::kFloat, {2}, {2.5f, 3.0f});
  const NamedTensor outputs[] = {{"y", y.view()}};
  const auto response = Parse(EncodePredictResponse(kAnswered, outputs, false));
  EXPECT_EQ(response.model_spec().name(), "half");
  EXPECT_EQ(response.model_spec().version().value(), 123);
  EXPECT_EQ(response.model_spec().signature_name(), "serving_default");
  EXPECT_THAT(response.outputs().at("y").float_val(), ElementsAre(2.5f, 3.0f));
  EXPECT_EQ(response.outputs().at("y").tensor_shape().dim(0).size(), 2);
}

TEST(EncodePredictResponse, VersionZeroAndNoOutputsAreFine) {
  const tensor::ModelSpec spec{
      .name = "m", .version = 0, .version_label = "", .signature_name = ""};
  const auto response = Parse(EncodePredictResponse(spec, {}, false));
  EXPECT_TRUE(response.model_spec().has_version());
  EXPECT_EQ(response.outputs_size(), 0);
}

TEST(EncodePredictResponse, EveryTypeGoesIntoItsField) {
  const auto ints = [](DType dtype, const auto& values) {
    return EncodeOne(MakeTensor(dtype, {static_cast<int64_t>(values.size())}, values), false);
  };
  EXPECT_THAT(ints(DType::kInt32, std::vector<int32_t>{-1, 300}).int_val(), ElementsAre(-1, 300));
  EXPECT_THAT(ints(DType::kInt16, std::vector<int16_t>{-2}).int_val(), ElementsAre(-2));
  EXPECT_THAT(ints(DType::kInt8, std::vector<int8_t>{-128}).int_val(), ElementsAre(-128));
  EXPECT_THAT(ints(DType::kUint8, std::vector<uint8_t>{255}).int_val(), ElementsAre(255));
  EXPECT_THAT(ints(DType::kUint16, std::vector<uint16_t>{65535}).int_val(), ElementsAre(65535));
  EXPECT_THAT(ints(DType::kHalf, std::vector<uint16_t>{0xfc00}).half_val(), ElementsAre(0xfc00));
  EXPECT_THAT(ints(DType::kBfloat16, std::vector<uint16_t>{1}).half_val(), ElementsAre(1));
  EXPECT_THAT(ints(DType::kInt64, std::vector<int64_t>{INT64_MIN}).int64_val(),
              ElementsAre(INT64_MIN));
  EXPECT_THAT(ints(DType::kUint32, std::vector<uint32_t>{UINT32_MAX}).uint32_val(),
              ElementsAre(UINT32_MAX));
  EXPECT_THAT(ints(DType::kUint64, std::vector<uint64_t>{UINT64_MAX}).uint64_val(),
              ElementsAre(UINT64_MAX));
  EXPECT_THAT(ints(DType::kDouble, std::vector<double>{0.5}).double_val(), ElementsAre(0.5));
  const auto complex = MakeTensor<float>(DType::kComplex64, {1}, {1, 2});
  EXPECT_THAT(EncodeOne(complex, false).scomplex_val(), ElementsAre(1, 2));
  const auto complex128 = MakeTensor<double>(DType::kComplex128, {}, {3, 4});
  EXPECT_THAT(EncodeOne(complex128, false).dcomplex_val(), ElementsAre(3, 4));
  const auto bools = MakeTensor<uint8_t>(DType::kBool, {3}, {0, 1, 200});
  EXPECT_THAT(EncodeOne(bools, false).bool_val(), ElementsAre(false, true, true));
  const auto strings = MakeStrings({3}, {"", "ab", std::string(300, 'x')});
  EXPECT_THAT(EncodeOne(strings, false).string_val(), ElementsAre("", "ab", std::string(300, 'x')));
}

TEST(EncodePredictResponse, WhatIsEncodedDecodesToTheSameBytes) {
  std::vector<tensor::Tensor> tensors;
  tensors.push_back(MakeTensor<float>(DType::kFloat, {1, 2}, {1, 2}));
  tensors.push_back(MakeTensor<int16_t>(DType::kInt16, {2}, {-5, 5}));
  tensors.push_back(MakeTensor<uint8_t>(DType::kBool, {2}, {1, 0}));
  tensors.push_back(MakeTensor<double>(DType::kComplex128, {1}, {1, 2}));
  tensors.push_back(MakeTensor<float>(DType::kFloat, {0, 3}, {}));
  tensors.push_back(MakeStrings({2, 1}, {"a", "bcd"}));
  for (const tensor::Tensor& tensor : tensors) {
    for (const bool as_content : {false, true}) {
      const std::string bytes = EncodeOne(tensor, as_content).SerializeAsString();
      const std::string_view pieces[] = {bytes};
      DecodeBudget budget;
      const auto decoded = DecodeTensor(pieces, &budget);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(decoded->view.dtype, tensor.dtype);
      EXPECT_EQ(decoded->view.shape, tensor.shape);
      EXPECT_TRUE(std::equal(decoded->view.bytes.begin(), decoded->view.bytes.end(),
                             tensor.view().bytes.begin(), tensor.view().bytes.end()))
          << DTypeName(tensor.dtype) << as_content;
    }
  }
}

TEST(EncodePredictResponse, TensorContentHoldsThePackedBytesWhenAsked) {
  const tf::TensorProto proto = EncodeOne(MakeTensor<int32_t>(DType::kInt32, {1}, {258}), true);
  EXPECT_EQ(proto.tensor_content(), std::string("\x02\x01\x00\x00", 4));
  EXPECT_EQ(proto.int_val_size(), 0);
  const tf::TensorProto strings = EncodeOne(MakeStrings({2}, {"a", "bc"}), true);
  EXPECT_EQ(strings.tensor_content(),
            "\x01\x02"
            "abc");
}

TEST(EncodePredictResponse, AWorkersMalformedBytesAreAnInternalError) {
  const tensor::Tensor tensor = MakeTensor<float>(DType::kFloat, {1}, {1});
  const NamedTensor short_bytes[] = {{"y", {DType::kFloat, Shape{2}, tensor.view().bytes}}};
  EXPECT_EQ(EncodePredictResponse(kAnswered, short_bytes, false).status().code(),
            absl::StatusCode::kInternal);
  const NamedTensor bad_strings[] = {{"y", {DType::kString, Shape{1}, tensor.view().bytes}}};
  EXPECT_EQ(EncodePredictResponse(kAnswered, bad_strings, false).status().code(),
            absl::StatusCode::kInternal);
  const NamedTensor resource[] = {{"y", {DType::kResource, Shape{1}, {}}}};
  EXPECT_EQ(EncodePredictResponse(kAnswered, resource, false).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace tensord::wire
