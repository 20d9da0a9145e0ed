// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/bind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "wire/testing/tensors.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeEndpoint;
using testing::MakeTensor;

std::string Text(const absl::Status& status) { return std::string(base::Message(status)); }

// Inputs a: float [-1,2], b: int32 [-1]; outputs y, z.
tensor::Signature TwoInputs() {
  tensor::Signature signature;
  signature.name = "sig";
  signature.inputs.push_back(MakeEndpoint("a", DType::kFloat, {-1, 2}));
  signature.inputs.push_back(MakeEndpoint("b", DType::kInt32, {-1}));
  signature.outputs.push_back(MakeEndpoint("y", DType::kFloat, {-1}));
  signature.outputs.push_back(MakeEndpoint("z", DType::kFloat, {-1}));
  return signature;
}

tensor::NamedTensor Named(std::string_view name, DType dtype, Shape shape) {
  return {name, {dtype, shape, {}}};
}

tensor::PredictRequest Request(std::vector<tensor::NamedTensor> inputs) {
  tensor::PredictRequest request;
  request.inputs = std::move(inputs);
  return request;
}

TEST(Bind, PutsInputsIntoTheSignaturesOrderAndCountsRows) {
  const auto call = Bind(
      Request({Named("b", DType::kInt32, {3}), Named("a", DType::kFloat, {3, 2})}), TwoInputs());
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->inputs[0].dtype, DType::kFloat);
  EXPECT_EQ(call->inputs[1].dtype, DType::kInt32);
  EXPECT_THAT(call->outputs, ElementsAre(0, 1));
  EXPECT_EQ(call->rows, 3);
  EXPECT_TRUE(call->fits_signature);
}

TEST(Bind, RowsAreUnknownWhenInputsDisagreeOrAreScalars) {
  const auto differ = Bind(
      Request({Named("a", DType::kFloat, {3, 2}), Named("b", DType::kInt32, {4})}), TwoInputs());
  EXPECT_EQ(differ->rows, -1);
  const auto scalar = Bind(
      Request({Named("a", DType::kFloat, {3, 2}), Named("b", DType::kInt32, {})}), TwoInputs());
  EXPECT_EQ(scalar->rows, -1);
}

TEST(Bind, ShapesThatDoNotFitRunAndAreDescribed) {
  // half_plus_two's signature says [-1,1], and its best-known call sends [3].
  const tensor::Signature signature = TwoInputs();
  const auto call =
      Bind(Request({Named("a", DType::kFloat, {3}), Named("b", DType::kInt32, {3})}), signature);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_FALSE(call->fits_signature);
  EXPECT_EQ(call->rows, 3);
  EXPECT_EQ(DescribeMisfits(*call, signature),
            "input \"a\" came with shape [3], the signature says [-1,2]");
}

TEST(Bind, AMissingInputTakesItsDefault) {
  tensor::Signature signature = TwoInputs();
  signature.inputs[1].default_value = MakeTensor<int32_t>(DType::kInt32, {1}, {7});
  const auto call = Bind(Request({Named("a", DType::kFloat, {1, 2})}), signature);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_THAT(testing::ValuesOf<int32_t>(call->inputs[1]), ElementsAre(7));
}

TEST(Bind, TheOutputFilterDecidesWhichOutputsAndTheirOrder) {
  auto request = Request({Named("a", DType::kFloat, {1, 2}), Named("b", DType::kInt32, {1})});
  request.output_filter = {"z", "y"};
  EXPECT_THAT(Bind(request, TwoInputs())->outputs, ElementsAre(1, 0));
  request.output_filter = {"z"};
  EXPECT_THAT(Bind(request, TwoInputs())->outputs, ElementsAre(1));
}

TEST(Bind, WhatCannotBeCalledIsRefusedInTheOriginalsWords) {
  const tensor::NamedTensor a = Named("a", DType::kFloat, {1, 2});
  const tensor::NamedTensor b = Named("b", DType::kInt32, {1});
  const struct {
    tensor::PredictRequest request;
    std::vector<std::string_view> filter;
    bool with_default;
    std::string text;
  } rows[] = {
      {Request({a}),
       {},
       false,
       "input size does not match signature: 1!=2 len({a}) != len({a,b}). Sent extra: {}. Missing "
       "but required: {b}."},
      {Request({}),
       {},
       false,
       "0!=2 len({}) != len({a,b}). Sent extra: {}. Missing but required: "
       "{a,b}."},
      {Request({a, b, Named("c", DType::kFloat, {})}),
       {},
       true,
       "3!=2 len({a,b,c}) != len({a,b}). Sent extra: {c}. Missing but required: {}."},
      {Request({a, Named("c", DType::kFloat, {})}),
       {},
       false,
       "Signature input alias: b(feed name: b:0) not found in request and no default value "
       "provided. Inputs expected to be in the request {a,c}, or default input alias set: "},
      {Request({a, Named("c", DType::kFloat, {})}),
       {},
       true,
       "Inputs contains invalid name. Used request inputs: a, request input: a,c"},
      {Request({Named("a", DType::kInt32, {1, 2}), b}),
       {},
       false,
       "Expects arg[0] to be float but int32 is provided: input \"a\" of signature \"sig\""},
      {Request({a, b}),
       {"q"},
       false,
       "output tensor alias not found in signature: q Outputs expected to be in the set {y,z}."},
      {Request({a, b}), {"y", "y"}, false, "duplicate output tensor alias: y"},
  };
  for (const auto& row : rows) {
    tensor::Signature signature = TwoInputs();
    if (row.with_default) {
      signature.inputs[1].default_value = MakeTensor<int32_t>(DType::kInt32, {1}, {7});
    }
    tensor::PredictRequest request;
    request.inputs = row.request.inputs;
    request.output_filter = row.filter;
    const auto call = Bind(request, signature);
    EXPECT_EQ(call.status().code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_THAT(Text(call.status()), HasSubstr(row.text));
  }
}

TEST(Bind, SparseTensorsCannotBeFedOrFetched) {
  tensor::Signature signature = TwoInputs();
  signature.outputs[1].dense = false;
  auto request = Request({Named("a", DType::kFloat, {1, 2}), Named("b", DType::kInt32, {1})});
  EXPECT_THAT(Text(Bind(request, signature).status()), HasSubstr("output \"z\""));
  request.output_filter = {"y"};
  EXPECT_TRUE(Bind(request, signature).ok());
  signature.inputs[0].dense = false;
  EXPECT_THAT(Text(Bind(request, signature).status()), HasSubstr("input \"a\""));
}

TEST(Bind, ASignatureWithoutInputsHasNoRows) {
  tensor::Signature signature;
  signature.outputs.push_back(MakeEndpoint("y", DType::kFloat, {}));
  const auto call = Bind(Request({}), signature);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->rows, -1);
  EXPECT_THAT(call->inputs, IsEmpty());
}

TEST(IsBatchable, NeedsAnOpenLeadingDimEverywhere) {
  EXPECT_TRUE(IsBatchable(TwoInputs()));
  tensor::Signature fixed = TwoInputs();
  fixed.inputs[0].shape.dims[0] = 4;
  EXPECT_FALSE(IsBatchable(fixed));
  tensor::Signature scalar = TwoInputs();
  scalar.outputs[0].shape.dims.clear();
  EXPECT_FALSE(IsBatchable(scalar));
  tensor::Signature sparse = TwoInputs();
  sparse.outputs[0].dense = false;
  EXPECT_FALSE(IsBatchable(sparse));
  EXPECT_FALSE(IsBatchable(tensor::Signature{}));
}

TEST(FindSignature, AnEmptyNameIsTheDefaultAndUnknownOnesAreRefusedByProtocol) {
  tensor::SignatureList signatures(2);
  signatures[0].name = "regress";
  signatures[1].name = "serving_default";
  EXPECT_EQ(*FindSignature(signatures, ""), 1);
  EXPECT_EQ(*FindSignatureForJson(signatures, "regress"), 0);
  const absl::Status grpc = FindSignature(signatures, "s").status();
  EXPECT_EQ(grpc.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(grpc), HasSubstr("Serving signature key \"s\" not found."));
  const absl::Status rest = FindSignatureForJson(signatures, "s").status();
  EXPECT_EQ(rest.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(rest), HasSubstr("Serving signature name: \"s\" not found in signature def"));
}

TEST(FindSignature, EachCallHasItsOwnWordsForAMiss) {
  tensor::SignatureList signatures(1);
  signatures[0].name = "serving_default";
  EXPECT_EQ(*FindInferenceSignature(signatures, ""), 0);
  EXPECT_EQ(*FindTaskSignature(signatures, ""), 0);
  const absl::Status inference = FindInferenceSignature(signatures, "s").status();
  EXPECT_TRUE(absl::IsInvalidArgument(inference));
  EXPECT_EQ(base::Message(inference),
            "No signature was found with the name: s. The model has {serving_default}.");
  const absl::Status task = FindTaskSignature(signatures, "s").status();
  EXPECT_TRUE(absl::IsInvalidArgument(task));
  EXPECT_EQ(base::Message(task),
            "Requested signature not found in model graph: s. The model has {serving_default}.");
}

TEST(CheckPredictMethod, KnowsThreeMethods) {
  tensor::Signature signature;
  for (const char* known : {"predict", "classify", "regress"}) {
    signature.method_name = base::Cat("tensorflow/serving/", known);
    EXPECT_TRUE(CheckPredictMethod(signature).ok());
  }
  for (const char* other : {"", "predict", "tensorflow/serving/other"}) {
    signature.method_name = other;
    EXPECT_TRUE(absl::IsInternal(CheckPredictMethod(signature))) << other;
  }
}

}  // namespace
}  // namespace tensord::wire
