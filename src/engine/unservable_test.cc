// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/unservable.h"

#include "base/protobuf_wire.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"

namespace tensord::engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Field(uint32_t number, std::string_view bytes) {
  std::string out;
  base::AppendBytesField(number, bytes, &out);
  return out;
}
std::string Number(uint32_t field, uint64_t value) {
  std::string out;
  base::AppendVarintField(field, value, &out);
  return out;
}
std::string Entry(std::string_view key, std::string_view value) {
  return Field(1, key) + Field(2, value);
}
std::string Dense(tensor::DType dtype) {
  return Field(1, "x:0") + Number(2, static_cast<uint64_t>(dtype));
}
std::string Composite(uint64_t type_spec_class) {
  return Number(2, 1) + Field(5, Field(1, Number(1, type_spec_class)));
}
// A map of one signature with one input and one output.
std::string Map(std::string_view name, std::string_view input, std::string_view output) {
  return Field(1, Entry(name, Field(1, Entry("in", input)) + Field(2, Entry("out", output))));
}

const std::string kFloat = Dense(tensor::DType::kFloat);

TEST(DescribeUnservable, SaysNothingOfDenseTensors) {
  EXPECT_THAT(DescribeUnservable(Map("serving_default", kFloat, kFloat)), IsEmpty());
}

TEST(DescribeUnservable, NamesTheInputAndWhatToExportInstead) {
  EXPECT_THAT(DescribeUnservable(Map("a", Composite(3), kFloat)),
              ElementsAre(AllOf(HasSubstr("signature 'a' cannot be served"), HasSubstr("'in'"),
                                HasSubstr("ragged"), HasSubstr("from_row_lengths"))));
  EXPECT_THAT(DescribeUnservable(Map("a", Composite(1), kFloat)),
              ElementsAre(HasSubstr("a sparse tensor")));
  EXPECT_THAT(DescribeUnservable(Map("a", Field(4, ""), kFloat)),
              ElementsAre(HasSubstr("a sparse tensor")));
  EXPECT_THAT(DescribeUnservable(Map("a", Dense(tensor::DType::kResource), kFloat)),
              ElementsAre(HasSubstr("a resource")));
}

TEST(DescribeUnservable, KnowsThatAnOutputCanBeLeftOut) {
  EXPECT_THAT(DescribeUnservable(Map("a", kFloat, Composite(3))),
              ElementsAre(AllOf(HasSubstr("output 'out'"), HasSubstr("output_filter"))));
}

TEST(DescribeUnservable, NamesTypesAndRanksThatNoMessageCarries) {
  constexpr auto kFloat8 = static_cast<tensor::DType>(25);
  EXPECT_THAT(DescribeUnservable(Map("a", kFloat, Dense(tensor::DType::kQint8))),
              ElementsAre(AllOf(HasSubstr("a tensor of type qint8"), HasSubstr("output_filter"))));
  EXPECT_THAT(DescribeUnservable(Map("a", Dense(kFloat8), kFloat)),
              ElementsAre(HasSubstr("a tensor of type float8_e4m3fn")));
  EXPECT_THAT(DescribeUnservable(Map("a", kFloat, Field(1, "y:0"))),
              ElementsAre(HasSubstr("declared without a type")));
  std::string shape;
  for (int i = 0; i < 9; ++i) shape += Field(2, Number(1, 1));
  EXPECT_THAT(DescribeUnservable(Map("a", kFloat, kFloat + Field(3, shape))),
              ElementsAre(HasSubstr("a tensor of rank 9 (the limit is 8)")));
  EXPECT_THAT(DescribeUnservable(Map("a", kFloat, Field(1, "v:0") + Number(2, 101))), IsEmpty())
      << "a reference to a float variable is fetched as a float";
}

TEST(DescribeUnservable, LooksAtEachSignatureThatCanBeCalled) {
  EXPECT_THAT(DescribeUnservable(Map("b", Composite(3), kFloat) + Map("a", Composite(1), kFloat) +
                                 Map("__saved_model_init_op", Composite(3), kFloat)),
              ElementsAre(HasSubstr("signature 'a'"), HasSubstr("signature 'b'")));
}

}  // namespace
}  // namespace tensord::engine
