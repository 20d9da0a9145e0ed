// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/pack.h"

#include <cstring>
#include <vector>

#include "base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/string_layout.h"

namespace tensord::fleet {
namespace {

using ::testing::ElementsAre;

tensor::TensorView Ints(const std::vector<int32_t>& values, tensor::Shape shape) {
  return {tensor::DType::kInt32, shape, std::as_bytes(std::span(values))};
}

TEST(Pack, JoinsPiecesAlongTheFirstDim) {
  const std::vector<int32_t> a = {1, 2, 3, 4};
  const std::vector<int32_t> b = {5, 6};
  const RunSpec spec{.inputs = {{Ints(a, {2, 2}), Ints(b, {1, 2})}, {Ints(b, {2}), Ints(b, {2})}}};
  const auto plan = LayOut(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].shape, (tensor::Shape{3, 2}));
  EXPECT_EQ(plan->inputs[0].bytes, 24u);
  EXPECT_EQ(plan->inputs[1].offset, 64u);
  EXPECT_EQ(plan->bytes, 128u);
  std::vector<std::byte> region(plan->bytes);
  Pack(spec, *plan, region);
  std::vector<int32_t> joined(6);
  std::memcpy(joined.data(), region.data(), 24);
  EXPECT_THAT(joined, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Pack, TakesOnePieceAsItIsWhateverItsRank) {
  const std::vector<int32_t> scalar = {7};
  const RunSpec spec{.inputs = {{Ints(scalar, {})}}};
  const auto plan = LayOut(spec);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->inputs[0].shape, tensor::Shape{});
  EXPECT_EQ(plan->inputs[0].bytes, 4u);
}

TEST(Pack, JoinedShapesKeepTheLimits) {
  const tensor::TensorView half{tensor::DType::kInt8, {int64_t{1} << 30, 2}, {}};
  EXPECT_EQ(LayOut({.inputs = {{half, half}}}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Pack, AStringTableThatDoesNotAddUpIsRefused) {
  const std::vector<std::byte> bytes(24, std::byte{0xff});
  const tensor::TensorView piece{tensor::DType::kString, {2}, bytes};
  EXPECT_FALSE(LayOut({.inputs = {{piece}}}).ok());
}

}  // namespace
}  // namespace tensord::fleet
