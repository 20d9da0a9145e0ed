// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tensor/signature.h"
#include "tensor/string_layout.h"

namespace tensord::tensor {
namespace {

using ::testing::HasSubstr;

TEST(Shape, AScalarHasOneElement) {
  const Shape shape;
  EXPECT_EQ(shape.rank(), 0);
  EXPECT_EQ(shape.elements(), 1);
  EXPECT_EQ(shape.ToString(), "[]");
}

TEST(Shape, NegativeDimsAreRefusedByName) {
  const auto shape = Shape::Make(std::vector<int64_t>{2, -1});
  EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shape.status().message()), HasSubstr("dim 1 is -1"));
}

TEST(Shape, OverflowingProductsAreRefusedEvenBesideAZeroDim) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {1ll << 32, 1ll << 32}, {kHuge}, {kHuge, 2}, {0, kHuge, kHuge}, {kHuge, 0, 3}}) {
    EXPECT_FALSE(Shape::Make(dims).ok()) << dims.size();
  }
}

TEST(Shape, MoreThanEightDimsAreRefused) {
  EXPECT_TRUE(Shape::Make(std::vector<int64_t>(8, 1)).ok());
  EXPECT_FALSE(Shape::Make(std::vector<int64_t>(9, 1)).ok());
}

TEST(PartialShape, OpenDimsAdmitAnySizeAndFixedOnesOnlyTheirOwn) {
  const PartialShape shape{.unknown_rank = false, .dims = {-1, 3}};
  EXPECT_TRUE(shape.Admits(Shape{0, 3}));
  EXPECT_TRUE(shape.Admits(Shape{7, 3}));
  EXPECT_FALSE(shape.Admits(Shape{7, 4}));
  EXPECT_FALSE(shape.Admits(Shape{3}));
  EXPECT_TRUE(PartialShape{}.Admits(Shape{1, 2, 3}));
}

TEST(FixedBytes, CountsElementBytesAndRefusesWhatIsTooLarge) {
  EXPECT_EQ(*FixedBytes(DType::kFloat, Shape{2, 3}), 24u);
  EXPECT_EQ(*FixedBytes(DType::kComplex128, Shape{}), 16u);
  EXPECT_FALSE(FixedBytes(DType::kDouble, Shape{1 << 30}).ok());
}

TEST(Buffer, IsAlignedTo64Bytes) {
  const Buffer buffer(3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.bytes().data()) % 64, 0u);
}

TEST(StringLayout, StringsComeBackAsTheyWereWritten) {
  Buffer buffer(PackedStringBytes(3, 5));
  StringWriter writer(buffer.bytes(), 3);
  writer.Add("ab");
  writer.Add("");
  writer.Add("cde");

  const auto reader = StringReader::Open(buffer.bytes(), 3);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)[0], "ab");
  EXPECT_EQ((*reader)[1], "");
  EXPECT_EQ((*reader)[2], "cde");
}

TEST(StringLayout, BadOffsetsAreRefused) {
  Buffer buffer(PackedStringBytes(2, 4));
  const auto open = [&](uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t offsets[] = {a, b, c};
    std::memcpy(buffer.bytes().data(), offsets, sizeof(offsets));
    return StringReader::Open(buffer.bytes(), 2).ok();
  };
  EXPECT_TRUE(open(0, 2, 4));
  EXPECT_FALSE(open(1, 2, 4)) << "first offset not zero";
  EXPECT_FALSE(open(0, 3, 2)) << "steps back";
  EXPECT_FALSE(open(0, 2, 5)) << "leaves the payload";
  EXPECT_FALSE(open(0, 2, 3)) << "leaves bytes over";
  EXPECT_FALSE(StringReader::Open(buffer.bytes(), std::numeric_limits<uint64_t>::max()).ok());
}

TEST(Signature, EndpointsAreFoundByName) {
  Signature signature;
  signature.inputs.resize(2);
  signature.inputs[0].name = "a";
  signature.inputs[1].name = "b";
  EXPECT_EQ(signature.InputIndex("b"), 1);
  EXPECT_EQ(signature.InputIndex("c"), -1);
  EXPECT_EQ(signature.OutputIndex("a"), -1);
}

SignatureList OneInput(DType dtype, PartialShape shape) {
  Signature signature;
  signature.name = "serving_default";
  signature.inputs.resize(1);
  signature.inputs[0].name = "x";
  signature.inputs[0].dtype = dtype;
  signature.inputs[0].shape = std::move(shape);
  SignatureList list;
  list.push_back(std::move(signature));
  return list;
}

TEST(Signature, ListsThatDifferInATypeOrShapeAreNotTheSameCalls) {
  const SignatureList list = OneInput(DType::kFloat, {});
  EXPECT_TRUE(SameCalls(list, OneInput(DType::kFloat, {})));
  EXPECT_FALSE(SameCalls(list, OneInput(DType::kInt32, {})));
  EXPECT_FALSE(SameCalls(list, OneInput(DType::kFloat, {.unknown_rank = false, .dims = {-1}})));
  EXPECT_FALSE(SameCalls(list, {}));
}

}  // namespace
}  // namespace tensord::tensor
