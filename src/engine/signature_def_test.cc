// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/signature_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/graph_bytes.h"

namespace tensord::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kFloat = 1;
constexpr uint64_t kString = 7;

tensor::Signature ParseOne(const std::string& signature_def) {
  auto list = ParseSignatureDefs(MapEntry(1, "s", signature_def), kSignatureDefMapField);
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() && list->size() == 1 ? std::move(list->front()) : tensor::Signature();
}

TEST(ParseSignatureDefs, SortsWhateverTheOrderOnTheWire) {
  const std::string a = TensorInfoBytes("a:0", kFloat, ShapeBytes({-1, 3}));
  const std::string b = TensorInfoBytes("b:1", kString);
  const std::string x = MapEntry(1, "zeta", a) + MapEntry(1, "alpha", b) + MapEntry(2, "y", a) +
                        BytesField(3, "tensorflow/serving/predict");
  const auto list =
      ParseSignatureDefs(MapEntry(1, "two", x) + MapEntry(1, "one", ""), kSignatureDefMapField);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_THAT(*list, SizeIs(2));
  EXPECT_EQ((*list)[0].name, "one");
  const tensor::Signature& two = (*list)[1];
  EXPECT_EQ(two.method_name, "tensorflow/serving/predict");
  ASSERT_THAT(two.inputs, SizeIs(2));
  EXPECT_EQ(two.inputs[0].name, "alpha");
  EXPECT_EQ(two.inputs[0].tensor_name, "b:1");
  EXPECT_EQ(two.inputs[0].dtype, tensor::DType::kString);
  EXPECT_THAT(two.inputs[0].shape.dims, IsEmpty());
  EXPECT_FALSE(two.inputs[0].shape.unknown_rank);
  EXPECT_EQ(two.inputs[1].name, "zeta");
  EXPECT_THAT(two.inputs[1].shape.dims, ElementsAre(-1, 3));
  EXPECT_TRUE(two.inputs[1].dense);
}

TEST(ParseSignatureDefs, TheLastOfTwoEqualKeysCounts) {
  const tensor::Signature signature = ParseOne(MapEntry(1, "x", TensorInfoBytes("old:0", kFloat)) +
                                               MapEntry(1, "x", TensorInfoBytes("new:0", kFloat)));
  ASSERT_THAT(signature.inputs, SizeIs(1));
  EXPECT_EQ(signature.inputs[0].tensor_name, "new:0");
}

TEST(ParseSignatureDefs, UnknownRankAndSparseAndNoTensorAreTold) {
  const std::string sparse = NumberField(2, kFloat) + BytesField(4, BytesField(1, "v:0"));
  const tensor::Signature signature =
      ParseOne(MapEntry(1, "any", TensorInfoBytes("x:0", kFloat, NumberField(3, 1))) +
               MapEntry(1, "sparse", sparse) + MapEntry(2, "init", TensorInfoBytes("NoOp", 0)));
  ASSERT_THAT(signature.inputs, SizeIs(2));
  EXPECT_TRUE(signature.inputs[0].shape.unknown_rank);
  EXPECT_FALSE(signature.inputs[1].dense);
  EXPECT_FALSE(signature.outputs[0].dense);
}

TEST(ParseSignatureDefs, TypesThatNoMessageCarriesAreNotDense) {
  const tensor::Signature signature = ParseOne(MapEntry(2, "float8", TensorInfoBytes("a:0", 25)) +
                                               MapEntry(2, "none", TensorInfoBytes("b:0", 0)) +
                                               MapEntry(2, "qint8", TensorInfoBytes("c:0", 11)) +
                                               MapEntry(2, "resource", TensorInfoBytes("d:0", 20)) +
                                               MapEntry(2, "variant", TensorInfoBytes("e:0", 21)) +
                                               MapEntry(2, "y", TensorInfoBytes("y:0", kFloat)));
  for (const tensor::Endpoint& output : signature.outputs) {
    EXPECT_EQ(output.dense, output.name == "y") << output.name;
  }
}

TEST(ParseSignatureDefs, ReadsTheMetaGraphsFieldAndNoOther) {
  const std::string bytes = MapEntry(5, "s", "") + MapEntry(1, "no", "") + BytesField(2, "graph");
  const auto list = ParseSignatureDefs(bytes, kMetaGraphSignatureField);
  ASSERT_TRUE(list.ok());
  ASSERT_THAT(*list, SizeIs(1));
  EXPECT_EQ((*list)[0].name, "s");
}

TEST(ParseSignatureDefs, GarbledBytesAreAnErrorAtEveryDepth) {
  for (const std::string& bytes :
       {std::string("\x0a\x09"), MapEntry(1, "s", "\x0a\x09"),
        MapEntry(1, "s", MapEntry(1, "x", "\x1a\x09")),
        MapEntry(1, "s", MapEntry(1, "x", BytesField(3, "\x12\x09"))),
        MapEntry(1, "s", MapEntry(1, "x", BytesField(3, BytesField(2, "\x08"))))}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSignatureDefs(bytes, kSignatureDefMapField).status()));
  }
}

}  // namespace
}  // namespace tensord::engine
