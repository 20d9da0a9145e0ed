// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "tensord/classification.pb.h"
#include "tensord/inference.pb.h"
#include "tensord/regression.pb.h"
#include "wire/json/print.h"
#include "wire/testing/tensors.h"

namespace tensord::wire {
namespace {

namespace tf = ::tensorflow;
using tensor::DType;
using ::testing::HasSubstr;
using testing::MakeEndpoint;
using testing::MakeStrings;
using testing::MakeTensor;

constexpr auto kClassify = InferenceMethod::kClassify;
constexpr auto kRegress = InferenceMethod::kRegress;

// Inputs and outputs by name; types do not matter to the checks of a form.
tensor::Signature Form(const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
  tensor::Signature signature;
  signature.name = "s";
  for (const std::string& name : inputs) {
    signature.inputs.push_back(MakeEndpoint(name, DType::kString, {-1}));
  }
  for (const std::string& name : outputs) {
    signature.outputs.push_back(MakeEndpoint(name, DType::kFloat, {-1, 1}));
  }
  return signature;
}

std::string Refusal(const tensor::Signature& signature, InferenceMethod method,
                    bool check_name = false) {
  const auto where = CheckInference(signature, method, check_name);
  return where.ok() ? "" : std::string(base::Message(where.status()));
}

TEST(CheckInference, FindsTheOutputsOfEachForm) {
  const auto both = CheckInference(Form({"inputs"}, {"classes", "scores"}), kClassify, false);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->labels, 0);
  EXPECT_EQ(both->values, 1);
  const auto scores = CheckInference(Form({"inputs"}, {"other", "scores"}), kClassify, false);
  ASSERT_TRUE(scores.ok());
  EXPECT_EQ(scores->labels, -1);
  EXPECT_EQ(scores->values, 1);
  const auto regress = CheckInference(Form({"inputs"}, {"outputs"}), kRegress, false);
  ASSERT_TRUE(regress.ok());
  EXPECT_EQ(regress->values, 0);
}

TEST(CheckInference, RefusesOtherFormsInTheOriginalWords) {
  EXPECT_THAT(Refusal(Form({"a", "b"}, {"scores"}), kClassify), HasSubstr("Expected one input"));
  EXPECT_THAT(Refusal(Form({"inputs"}, {"a", "b", "c"}), kClassify),
              HasSubstr("Expected one or two output Tensors, found 3"));
  EXPECT_THAT(Refusal(Form({"x"}, {"scores"}), kClassify),
              HasSubstr("No classification inputs found in SignatureDef"));
  EXPECT_THAT(Refusal(Form({"inputs"}, {"y"}), kClassify),
              HasSubstr("Expected classification signature outputs to contain at least one of "
                        "\"classes\" or \"scores\""));
  EXPECT_THAT(Refusal(Form({"inputs"}, {"a", "b"}), kRegress),
              HasSubstr("Expected one output Tensor"));
  EXPECT_THAT(Refusal(Form({"x"}, {"outputs"}), kRegress),
              HasSubstr("No regression inputs found in SignatureDef"));
  EXPECT_THAT(Refusal(Form({"inputs"}, {"y"}), kRegress),
              HasSubstr("No regression outputs found in SignatureDef"));
}

TEST(CheckInference, LooksAtTheMethodNameOnlyWhenAsked) {
  tensor::Signature signature = Form({"inputs"}, {"outputs"});
  signature.method_name = "tensorflow/serving/predict";
  EXPECT_EQ(Refusal(signature, kRegress, false), "");
  EXPECT_THAT(Refusal(signature, kRegress, true),
              HasSubstr("Expected regression signature method_name to be "
                        "tensorflow/serving/regress. Was: tensorflow/serving/predict"));
  signature.method_name = "tensorflow/serving/regress";
  EXPECT_EQ(Refusal(signature, kRegress, true), "");
}

TEST(MethodOf, KnowsTwo) {
  EXPECT_EQ(*MethodOf("tensorflow/serving/classify"), kClassify);
  EXPECT_EQ(*MethodOf("tensorflow/serving/regress"), kRegress);
  EXPECT_TRUE(absl::IsUnimplemented(MethodOf("tensorflow/serving/predict").status()));
}

struct BadOutputs {
  InferenceMethod method;
  InferenceOutputs where;
  std::vector<tensor::Tensor> outputs;
  std::string words;
};

std::string ReadRefusal(const BadOutputs& bad) {
  std::vector<tensor::TensorView> views;
  for (const tensor::Tensor& output : bad.outputs) views.push_back(output.view());
  const auto result = ReadInference(bad.method, bad.where, views, 2);
  return result.ok() ? "" : std::string(base::Message(result.status()));
}

template <typename... Tensors>
std::vector<tensor::Tensor> List(Tensors... tensors) {
  std::vector<tensor::Tensor> list;
  (list.push_back(std::move(tensors)), ...);
  return list;
}

TEST(ReadInference, RefusesOutputsThatAreNoResult) {
  const auto floats = [](tensor::Shape shape) {
    return MakeTensor<float>(DType::kFloat, shape,
                             std::vector<float>(static_cast<size_t>(shape.elements())));
  };
  const auto strings = [](tensor::Shape shape) {
    return MakeStrings(shape, std::vector<std::string>(static_cast<size_t>(shape.elements())));
  };
  const InferenceOutputs scores{.labels = -1, .values = 0};
  const InferenceOutputs classes{.labels = 0, .values = -1};
  std::vector<BadOutputs> all;
  all.push_back({kClassify, scores, List(floats({2})), "Expected Tensor shape: [batch_size"});
  all.push_back({kClassify, scores, List(strings({2, 1})),
                 "Expected scores Tensor of DT_FLOAT. Got: DT_STRING"});
  all.push_back(
      {kClassify, scores, List(floats({3, 1})), "Expected scores output batch size of 2. Got: 3"});
  all.push_back({kClassify, classes, List(floats({2, 1})),
                 "Expected classes Tensor of DT_STRING. Got: DT_FLOAT"});
  all.push_back({kClassify, classes, List(strings({1, 1})),
                 "Expected classes output batch size of 2. Got: 1"});
  all.push_back({kClassify, classes, List(strings({2})), "Expected Tensor shape: [batch_size"});
  all.push_back({kClassify,
                 {.labels = 0, .values = 1},
                 List(strings({2, 2}), floats({2, 3})),
                 "Tensors class and score should match in dim_size(1). Got 2 vs. 3"});
  all.push_back({kRegress, scores, List(floats({2, 2})), "Expected output Tensor shape to be"});
  all.push_back({kRegress, scores, List(floats({})), "Expected output Tensor shape to be"});
  all.push_back({kRegress, scores, List(floats({3})),
                 "Input batch size did not match output batch size: 2 vs. 3"});
  all.push_back({kRegress, scores, List(strings({2})),
                 "Expected output Tensor of DT_FLOAT.  Got: DT_STRING"});
  for (const BadOutputs& bad : all) EXPECT_THAT(ReadRefusal(bad), HasSubstr(bad.words));
}

const tensor::ModelSpec kAnswered{
    .name = "m", .version = 5, .version_label = "", .signature_name = "s"};

TEST(EncodeInference, ClassesHaveLabelsAndScores) {
  const tensor::Tensor labels = MakeStrings({2, 2}, {"a", "b", "c", "\xff"});
  const tensor::Tensor scores = MakeTensor<float>(DType::kFloat, {2, 2}, {0.25f, 0.f, -0.f, 1.f});
  const tensor::TensorView outputs[] = {labels.view(), scores.view()};
  const auto result = ReadInference(kClassify, {.labels = 0, .values = 1}, outputs, 2);
  ASSERT_TRUE(result.ok()) << result.status();
  tf::serving::ClassificationResponse response;
  const std::string bytes = EncodeInferenceResponse(kAnswered, *result);
  ASSERT_TRUE(response.ParseFromString(bytes));
  EXPECT_EQ(response.SerializeAsString(), bytes) << "not the canonical encoding";
  EXPECT_EQ(response.model_spec().version().value(), 5);
  EXPECT_EQ(response.model_spec().signature_name(), "s");
  ASSERT_EQ(response.result().classifications_size(), 2);
  EXPECT_EQ(response.result().classifications(0).classes(0).label(), "a");
  EXPECT_EQ(response.result().classifications(0).classes(0).score(), 0.25f);
  EXPECT_TRUE(std::signbit(response.result().classifications(1).classes(0).score()));
  EXPECT_EQ(response.result().classifications(1).classes(1).label(), "?");
}

TEST(EncodeInference, WhatTheModelLeavesOutIsEmptyOrZero) {
  const tensor::Tensor labels = MakeStrings({1, 1}, {"a"});
  const tensor::TensorView outputs[] = {labels.view()};
  const auto result = ReadInference(kClassify, {.labels = 0, .values = -1}, outputs, 1);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->label(0, 0), "a");
  EXPECT_EQ(result->value(0, 0), 0);
  const tensor::Tensor scores = MakeTensor<float>(DType::kFloat, {1, 1}, {2.f});
  const tensor::TensorView only[] = {scores.view()};
  const auto scored = ReadInference(kClassify, {.labels = -1, .values = 0}, only, 1);
  ASSERT_TRUE(scored.ok());
  EXPECT_EQ(scored->label(0, 0), "");
  EXPECT_EQ(scored->value(0, 0), 2);
}

TEST(EncodeInference, ResultsOfSeveralTasksKeepTheirOrder) {
  const tensor::Tensor y = MakeTensor<float>(DType::kFloat, {2}, {2.5f, 0.f});
  const tensor::Tensor scores = MakeTensor<float>(DType::kFloat, {2, 1}, {3.f, 4.f});
  const tensor::TensorView a[] = {y.view()};
  const tensor::TensorView b[] = {scores.view()};
  std::string bytes;
  AppendMultiInferenceResult(kAnswered, *ReadInference(kRegress, {.labels = -1, .values = 0}, a, 2),
                             &bytes);
  AppendMultiInferenceResult(kAnswered,
                             *ReadInference(kClassify, {.labels = -1, .values = 0}, b, 2), &bytes);
  tf::serving::MultiInferenceResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(0).regression_result().regressions(0).value(), 2.5f);
  EXPECT_EQ(response.results(0).regression_result().regressions_size(), 2);
  EXPECT_EQ(response.results(1).classification_result().classifications(1).classes(0).score(), 4.f);
  EXPECT_EQ(response.results(1).model_spec().name(), "m");
}

TEST(PrintInference, LooksAsTheOriginalPrintsIt) {
  const tensor::Tensor labels = MakeStrings({2, 2}, {"a", "b", "c", "d\""});
  const tensor::Tensor scores = MakeTensor<float>(DType::kFloat, {2, 2}, {0.2f, 1.f, 2e10f, 0.f});
  const tensor::TensorView outputs[] = {labels.view(), scores.view()};
  EXPECT_EQ(
      PrintInference(*ReadInference(kClassify, {.labels = 0, .values = 1}, outputs, 2)),
      "{\n    \"results\": [[[\"a\", 0.2], [\"b\", 1.0]], [[\"c\", 2e+10], [\"d\\\"\", 0.0]]\n"
      "    ]\n}");
  const tensor::Tensor y =
      MakeTensor<float>(DType::kFloat, {5}, {0.4f, INFINITY, 1.f, -INFINITY, std::nanf("")});
  const tensor::TensorView rows[] = {y.view()};
  EXPECT_EQ(PrintInference(*ReadInference(kRegress, {.labels = -1, .values = 0}, rows, 5)),
            "{\n    \"results\": [0.4, Infinity, 1.0, -Infinity, NaN]\n}");
}

}  // namespace
}  // namespace tensord::wire
