// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/row_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing/fake_engine.h"

namespace tensord::worker {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<float>;

tensor::Endpoint Open(const char* name, tensor::DType dtype) {
  tensor::Endpoint endpoint;
  endpoint.name = name;
  endpoint.dtype = dtype;
  endpoint.shape = {.unknown_rank = false, .dims = {-1}};
  return endpoint;
}

// What is said of a model that makes of its rows, one number each, as many others.
std::string WhyOf(const std::function<Values(Values)>& model,
                  tensor::DType dtype = tensor::DType::kFloat) {
  engine::FakeModelSpec spec;
  spec.signatures.emplace_back();
  spec.signatures[0].inputs.push_back(Open("x", dtype));
  spec.signatures[0].outputs.push_back(Open("y", tensor::DType::kFloat));
  spec.run = [model](int, std::span<const tensor::TensorView> inputs) {
    Values values(inputs[0].bytes.size() / sizeof(float));
    std::memcpy(values.data(), inputs[0].bytes.data(), values.size() * sizeof(float));
    values = model(std::move(values));
    std::vector<tensor::Tensor> outputs;
    outputs.push_back({.dtype = tensor::DType::kFloat,
                       .shape = tensor::Shape{static_cast<int64_t>(values.size())},
                       .buffer = tensor::Buffer(values.size() * sizeof(float))});
    std::memcpy(outputs[0].buffer.bytes().data(), values.data(), values.size() * sizeof(float));
    return outputs;
  };
  engine::FakeModel fake(std::move(spec));
  std::vector<tensor::Tensor> kept;
  return WhyRowsDepend(fake, 0, &kept);
}

Values Each(Values values, float (*function)(float)) {
  for (float& value : values) value = function(value);
  return values;
}

TEST(WhyRowsDepend, RowsThatEachComeOutTheSameMayBeJoined) {
  EXPECT_EQ(WhyOf([](Values x) { return Each(std::move(x), [](float v) { return v / 2 + 2; }); }),
            "");
  // Another batch size may round differently.
  EXPECT_EQ(WhyOf([](Values x) {
              const float off = x.size() == 1 ? 1.0f : 1.000001f;
              for (float& value : x) value *= off;
              return x;
            }),
            "");
}

TEST(WhyRowsDepend, RowsThatMixMayNot) {
  const char* const kMix = "depend on the other rows";
  EXPECT_THAT(WhyOf([](Values x) {
                std::ranges::sort(x);
                return x;
              }),
              HasSubstr(kMix));
  EXPECT_THAT(WhyOf([](Values x) {
                std::ranges::reverse(x);
                return x;
              }),
              HasSubstr(kMix));
  EXPECT_THAT(WhyOf([](Values x) {
                const float sum = std::accumulate(x.begin(), x.end(), 0.0f);
                for (float& value : x) value = value * 3 - sum;
                return x;
              }),
              HasSubstr(kMix));
  EXPECT_THAT(WhyOf([](Values x) {
                float sum = 0;
                for (const float value : x) sum += std::exp(value);
                for (float& value : x) value = value + std::exp(value) / sum;
                return x;
              }),
              HasSubstr(kMix));
}

TEST(WhyRowsDepend, ARunThatDropsOrRefusesRowsIsAReason) {
  EXPECT_THAT(WhyOf([](Values x) { return Values(x.begin(), x.begin() + 1); }),
              HasSubstr("does not have the rows"));
}

TEST(WhyRowsDepend, NumbersThatAreNoneAreTriedAgainWithPositiveOnes) {
  EXPECT_EQ(WhyOf([](Values x) { return Each(std::move(x), std::log); }), "");
  EXPECT_THAT(WhyOf([](Values x) {
                return Each(std::move(x),
                            [](float) { return std::numeric_limits<float>::quiet_NaN(); });
              }),
              HasSubstr("finite"));
}

TEST(WhyRowsDepend, OutputsThatSayNothingAreNoProof) {
  EXPECT_THAT(WhyOf([](Values x) { return Each(std::move(x), [](float) { return 7.0f; }); }),
              HasSubstr("all have the same outputs"));
}

TEST(WhyRowsDepend, TextsAreNotMadeUp) {
  EXPECT_THAT(WhyOf([](Values x) { return x; }, tensor::DType::kString),
              HasSubstr("inputs of type string"));
}

}  // namespace
}  // namespace tensord::worker
