// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/predict_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/text.h"
#include "tensor/string_layout.h"
#include "tensord/predict.pb.h"
#include "wire/tensor_walk.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace tf = ::tensorflow;

std::string Text(const absl::Status& status) { return std::string(base::Message(status)); }

tf::TensorProto Proto(tf::DataType dtype, const std::vector<int64_t>& dims) {
  tf::TensorProto proto;
  proto.set_dtype(dtype);
  for (const int64_t dim : dims) proto.mutable_tensor_shape()->add_dim()->set_size(dim);
  return proto;
}

struct Decoded {
  std::string bytes;  // Outlives the tensor.
  DecodedTensor tensor;
  bool copied() const { return tensor.owned.dtype != DType::kInvalid; }
};

absl::StatusOr<Decoded> DecodeBytes(std::string bytes) {
  Decoded decoded{.bytes = std::move(bytes), .tensor = {}};
  const std::string_view pieces[] = {decoded.bytes};
  DecodeBudget budget;
  auto tensor = DecodeTensor(pieces, &budget);
  if (!tensor.ok()) return tensor.status();
  decoded.tensor = *std::move(tensor);
  return decoded;
}

absl::StatusOr<Decoded> Decode(const tf::TensorProto& proto) {
  return DecodeBytes(proto.SerializeAsString());
}

template <typename T>
std::vector<T> Values(const DecodedTensor& tensor) {
  std::vector<T> values(tensor.view.bytes.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), tensor.view.bytes.data(), values.size() * sizeof(T));
  }
  return values;
}

std::vector<std::string> Strings(const DecodedTensor& tensor) {
  const auto elements = static_cast<uint64_t>(tensor.view.shape.elements());
  const auto reader = tensor::StringReader::Open(tensor.view.bytes, elements);
  std::vector<std::string> values;
  for (uint64_t i = 0; reader.ok() && i < elements; ++i) values.emplace_back((*reader)[i]);
  return values;
}

TEST(DecodeTensor, ContentIsAViewIntoTheMessage) {
  tf::TensorProto proto = Proto(tf::DT_FLOAT, {2, 1});
  proto.set_tensor_content(std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  const auto decoded = Decode(proto);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_FALSE(decoded->copied());
  EXPECT_EQ(decoded->tensor.view.shape, (Shape{2, 1}));
  EXPECT_THAT(Values<float>(decoded->tensor), ElementsAre(1.0f, 2.0f));
}

TEST(DecodeTensor, PackedValuesThatAreThePackedFormAreViews) {
  tf::TensorProto floats = Proto(tf::DT_FLOAT, {2});
  floats.add_float_val(1.5f);
  floats.add_float_val(-2.0f);
  tf::TensorProto doubles = Proto(tf::DT_DOUBLE, {1});
  doubles.add_double_val(0.25);
  tf::TensorProto complexes = Proto(tf::DT_COMPLEX64, {1});
  complexes.add_scomplex_val(1);
  complexes.add_scomplex_val(2);
  tf::TensorProto bools = Proto(tf::DT_BOOL, {2});
  bools.add_bool_val(true);
  bools.add_bool_val(false);
  tf::TensorProto bytes = Proto(tf::DT_UINT8, {2});
  bytes.add_int_val(0);
  bytes.add_int_val(127);
  for (const tf::TensorProto& proto : {floats, doubles, complexes, bools, bytes}) {
    const auto decoded = Decode(proto);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_FALSE(decoded->copied()) << proto.ShortDebugString();
  }
  const auto decoded = Decode(floats);
  EXPECT_THAT(Values<float>(decoded->tensor), ElementsAre(1.5f, -2.0f));
}

TEST(DecodeTensor, VarintsThatAreNotOneByteEachAreDecoded) {
  tf::TensorProto proto = Proto(tf::DT_UINT8, {2});
  proto.add_int_val(200);
  proto.add_int_val(3);
  const auto decoded = Decode(proto);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(Values<uint8_t>(decoded->tensor), ElementsAre(200, 3));
}

TEST(DecodeTensor, EveryNumericFieldIsDecodedAndItsLastValueRepeated) {
  const auto check = [](tf::DataType dtype, const std::function<void(tf::TensorProto*)>& fill,
                        const auto& expected) {
    tf::TensorProto proto = Proto(dtype, {3});
    fill(&proto);
    const auto decoded = Decode(proto);
    ASSERT_TRUE(decoded.ok()) << tf::DataType_Name(dtype) << decoded.status();
    using T = typename std::decay_t<decltype(expected)>::value_type;
    EXPECT_EQ(Values<T>(decoded->tensor), expected) << tf::DataType_Name(dtype);
  };
  const auto ints = [](tf::TensorProto* p) {
    p->add_int_val(-1);
    p->add_int_val(-2);
  };
  check(tf::DT_INT32, ints, std::vector<int32_t>{-1, -2, -2});
  check(tf::DT_INT16, ints, std::vector<int16_t>{-1, -2, -2});
  check(tf::DT_INT8, ints, std::vector<int8_t>{-1, -2, -2});
  check(tf::DT_UINT16, ints, std::vector<uint16_t>{65535, 65534, 65534});
  check(
      tf::DT_INT64, [](auto* p) { p->add_int64_val(-(1ll << 62)); },
      std::vector<int64_t>(3, -(1ll << 62)));
  check(
      tf::DT_UINT32, [](auto* p) { p->add_uint32_val(4000000000u); },
      std::vector<uint32_t>(3, 4000000000u));
  check(
      tf::DT_UINT64, [](auto* p) { p->add_uint64_val(~0ull); }, std::vector<uint64_t>(3, ~0ull));
  check(
      tf::DT_HALF, [](auto* p) { p->add_half_val(0x3c00); }, std::vector<uint16_t>(3, 0x3c00));
  check(
      tf::DT_BFLOAT16, [](auto* p) { p->add_half_val(0x3f80); }, std::vector<uint16_t>(3, 0x3f80));
  check(
      tf::DT_BOOL, [](auto* p) { p->add_bool_val(true); }, std::vector<uint8_t>{1, 1, 1});
  check(
      tf::DT_FLOAT, [](auto* p) { p->add_float_val(7); }, std::vector<float>{7, 7, 7});
  const auto pairs = [](tf::TensorProto* p) {
    for (const int v : {1, 2, 3, 4, 5}) p->add_dcomplex_val(v);  // The fifth has no partner.
  };
  check(tf::DT_COMPLEX128, pairs, std::vector<double>{1, 2, 3, 4, 3, 4});
}

TEST(DecodeTensor, NoValuesAreZerosAndSurplusIsDropped) {
  const auto zeros = Decode(Proto(tf::DT_INT32, {2, 2}));
  ASSERT_TRUE(zeros.ok());
  EXPECT_THAT(Values<int32_t>(zeros->tensor), ElementsAre(0, 0, 0, 0));

  tf::TensorProto proto = Proto(tf::DT_FLOAT, {});
  proto.add_float_val(1);
  proto.add_float_val(2);
  const auto scalar = Decode(proto);
  ASSERT_TRUE(scalar.ok());
  EXPECT_THAT(Values<float>(scalar->tensor), ElementsAre(1.0f));

  tf::TensorProto empty = Proto(tf::DT_FLOAT, {0, 4});
  empty.set_tensor_content("ignored, as the tensor has no elements");
  const auto none = Decode(empty);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->tensor.view.bytes.size(), 0u);
}

TEST(DecodeTensor, UnpackedAndSplitValuesAreOneList) {
  // dtype FLOAT, shape [4]; float_val unpacked 1, packed {2, 3}, unpacked 4.
  const std::string bytes(
      "\x08\x01\x12\x04\x12\x02\x08\x04"
      "\x2d\x00\x00\x80\x3f"
      "\x2a\x08\x00\x00\x00\x40\x00\x00\x40\x40"
      "\x2d\x00\x00\x80\x40",
      28);
  const auto decoded = DecodeBytes(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(Values<float>(decoded->tensor), ElementsAre(1.0f, 2.0f, 3.0f, 4.0f));

  tf::TensorProto same;
  ASSERT_TRUE(same.ParseFromString(bytes));
  EXPECT_EQ(same.float_val_size(), 4);
}

TEST(DecodeTensor, BoolContentIsNormalisedAndCopiedOnlyThen) {
  tf::TensorProto proto = Proto(tf::DT_BOOL, {3});
  proto.set_tensor_content(std::string("\x00\x01\x01", 3));
  const auto clean = Decode(proto);
  ASSERT_TRUE(clean.ok());
  EXPECT_FALSE(clean->copied());

  proto.set_tensor_content(std::string("\x00\x02\xff", 3));
  const auto dirty = Decode(proto);
  ASSERT_TRUE(dirty.ok());
  EXPECT_TRUE(dirty->copied());
  EXPECT_THAT(Values<uint8_t>(dirty->tensor), ElementsAre(0, 1, 1));
}

TEST(DecodeTensor, StringsComeFromValuesOrContent) {
  tf::TensorProto proto = Proto(tf::DT_STRING, {3});
  proto.add_string_val("ab");
  proto.add_string_val("");
  proto.add_string_val(std::string("\0\xff", 2));
  const auto values = Decode(proto);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(Strings(values->tensor), ElementsAre("ab", "", std::string("\0\xff", 2)));

  proto.clear_string_val();
  proto.add_string_val("last");
  const auto repeated = Decode(proto);
  ASSERT_TRUE(repeated.ok());
  EXPECT_THAT(Strings(repeated->tensor), ElementsAre("last", "last", "last"));

  proto.clear_string_val();
  const auto empty = Decode(proto);
  ASSERT_TRUE(empty.ok());
  EXPECT_THAT(Strings(empty->tensor), ElementsAre("", "", ""));

  proto.set_tensor_content(std::string("\x02\x00\x01xyz", 6));
  const auto content = Decode(proto);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(Strings(content->tensor), ElementsAre("xy", "", "z"));
}

TEST(DecodeTensor, WhatCannotBeATensorIsRefusedWithWhatWasExpected) {
  tf::TensorProto content = Proto(tf::DT_FLOAT, {2});
  content.set_tensor_content("1234567");
  tf::TensorProto lengths = Proto(tf::DT_STRING, {2});
  lengths.set_tensor_content("\x01\x02zz");
  const struct {
    tf::TensorProto proto;
    std::string text;
  } rows[] = {
      {content, "tensor_content holds 7 bytes where a float tensor of shape [2] needs 8"},
      {lengths, "tensor_content holds 2 bytes behind lengths that sum to 3"},
      {Proto(tf::DT_INVALID, {}), "the dtype is not set"},
      {Proto(tf::DT_RESOURCE, {}), "dtype resource cannot be sent"},
      {Proto(tf::DT_VARIANT, {}), "dtype variant cannot be sent"},
      {Proto(tf::DT_QINT8, {}), "dtype qint8 cannot be sent"},
      {Proto(tf::DT_FLOAT8_E5M2, {}), "dtype number 24 is not known"},
      {Proto(tf::DT_FLOAT_REF, {}), "dtype number 101 is not known"},
      {Proto(tf::DT_FLOAT, {2, -1}), "dim 1 is -1"},
      {Proto(tf::DT_FLOAT, std::vector<int64_t>(9, 1)), "rank is above the limit of 8"},
      {Proto(tf::DT_FLOAT, {1ll << 40}), "more than"},
      {Proto(tf::DT_DOUBLE, {1 << 30}), "the limit is 2147483648"},
      {Proto(tf::DT_FLOAT, {1 << 28}), "send all values"},
      {Proto(tf::DT_STRING, {1 << 28}), "send all values"},
  };
  for (const auto& row : rows) {
    const auto decoded = Decode(row.proto);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_THAT(Text(decoded.status()), HasSubstr(row.text));
  }
}

TEST(DecodeTensor, ALongStringRepeatedTooOftenIsRefused) {
  tf::TensorProto proto = Proto(tf::DT_STRING, {1 << 20});
  proto.add_string_val(std::string(1024, 'x'));
  EXPECT_THAT(Text(Decode(proto).status()), HasSubstr("send all values"));
}

TEST(DecodeTensor, CopiesStayInsideTheRequestsBudget) {
  tf::TensorProto proto = Proto(tf::DT_INT32, {4});
  const std::string bytes = proto.SerializeAsString();
  const std::string_view pieces[] = {bytes};
  DecodeBudget budget{.bytes = 20, .filled_bytes = 100};
  EXPECT_TRUE(DecodeTensor(pieces, &budget).ok());
  EXPECT_EQ(budget.bytes, 4u);
  EXPECT_EQ(budget.filled_bytes, 84u);
  EXPECT_THAT(Text(DecodeTensor(pieces, &budget).status()), HasSubstr("decoding needs 16 bytes"));
  budget = {.bytes = 20, .filled_bytes = 15};
  EXPECT_THAT(Text(DecodeTensor(pieces, &budget).status()),
              HasSubstr("leave 16 bytes to be filled"));
}

tf::serving::PredictRequest HalfPlusTwo() {
  tf::serving::PredictRequest request;
  request.mutable_model_spec()->set_name("half");
  (*request.mutable_inputs())["x"] = Proto(tf::DT_FLOAT, {2});
  return request;
}

TEST(ParsePredict, ReadsSpecInputsAndFilter) {
  tf::serving::PredictRequest proto = HalfPlusTwo();
  proto.mutable_model_spec()->mutable_version()->set_value(7);
  proto.mutable_model_spec()->set_signature_name("sig");
  proto.add_output_filter("y");
  proto.mutable_request_options()->set_client_id("ignored");
  (*proto.mutable_inputs())["a"] = Proto(tf::DT_STRING, {});
  const std::string body = proto.SerializeAsString();
  const auto request = ParsePredict(body);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->spec.name, "half");
  EXPECT_EQ(request->spec.version, 7);
  EXPECT_EQ(request->spec.version_label, "");
  EXPECT_EQ(request->spec.signature_name, "sig");
  EXPECT_THAT(request->output_filter, ElementsAre("y"));
  ASSERT_EQ(request->inputs.size(), 2u);
  EXPECT_EQ(request->inputs[0].name, "a");
  EXPECT_EQ(request->inputs[1].name, "x");
  EXPECT_EQ(request->inputs[1].tensor.dtype, DType::kFloat);
}

TEST(ParsePredict, TheLastOfVersionAndLabelWins) {
  tf::serving::PredictRequest version = HalfPlusTwo();
  version.mutable_model_spec()->mutable_version()->set_value(3);
  tf::serving::PredictRequest label;
  label.mutable_model_spec()->set_version_label("stable");
  const std::string first = version.SerializeAsString();
  const std::string second = label.SerializeAsString();

  const std::string label_last = first + second;
  auto request = ParsePredict(label_last);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->spec.name, "half");
  EXPECT_FALSE(request->spec.version.has_value());
  EXPECT_EQ(request->spec.version_label, "stable");

  const std::string version_last = second + first;
  request = ParsePredict(version_last);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->spec.version, 3);
  EXPECT_EQ(request->spec.version_label, "");
}

TEST(ParsePredict, AnEmptyVersionMessageIsVersionZero) {
  tf::serving::PredictRequest proto = HalfPlusTwo();
  proto.mutable_model_spec()->mutable_version();
  const std::string body = proto.SerializeAsString();
  EXPECT_EQ(ParsePredict(body)->spec.version, 0);
}

TEST(ParsePredict, TheLastEntryOfAnInputWins) {
  tf::serving::PredictRequest other;
  (*other.mutable_inputs())["x"] = Proto(tf::DT_INT32, {5});
  const std::string body = HalfPlusTwo().SerializeAsString() + other.SerializeAsString();
  const auto request = ParsePredict(body);
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->inputs.size(), 1u);
  EXPECT_EQ(request->inputs[0].tensor.dtype, DType::kInt32);
  EXPECT_EQ(request->inputs[0].tensor.shape, Shape{5});
}

TEST(ParsePredict, AValueThatComesTwiceInOneEntryIsMerged) {
  std::string entry;
  base::AppendBytesField(1, "x", &entry);
  base::AppendBytesField(2, Proto(tf::DT_INT32, {2}).SerializeAsString(), &entry);
  tf::TensorProto more;
  more.mutable_tensor_shape()->add_dim()->set_size(2);
  more.add_int_val(9);
  base::AppendBytesField(2, more.SerializeAsString(), &entry);
  std::string body;
  base::AppendBytesField(1, HalfPlusTwo().model_spec().SerializeAsString(), &body);
  base::AppendBytesField(2, entry, &body);

  tf::serving::PredictRequest official;
  ASSERT_TRUE(official.ParseFromString(body));
  EXPECT_EQ(official.inputs().at("x").tensor_shape().dim_size(), 2);

  const auto request = ParsePredict(body);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->inputs[0].tensor.shape, (Shape{2, 2}));
}

TEST(ParsePredict, DecodedTensorsStayWhereTheyAreWhenTheRequestMoves) {
  tf::serving::PredictRequest proto = HalfPlusTwo();
  (*proto.mutable_inputs())["x"].add_float_val(3);
  const std::string body = proto.SerializeAsString();
  auto parsed = ParsePredict(body);
  ASSERT_TRUE(parsed.ok());
  const tensor::PredictRequest moved = *std::move(parsed);
  float values[2];
  std::memcpy(values, moved.inputs[0].tensor.bytes.data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(3.0f, 3.0f));
}

TEST(ParsePredict, SaysWhatIsMissing) {
  tf::serving::PredictRequest no_name = HalfPlusTwo();
  no_name.mutable_model_spec()->clear_name();
  no_name.mutable_model_spec()->set_signature_name("s");
  tf::serving::PredictRequest bad_tensor = HalfPlusTwo();
  (*bad_tensor.mutable_inputs())["x"].set_tensor_content("1");
  const struct {
    std::string body;
    std::string text;
  } rows[] = {
      {"", "Missing ModelSpec"},
      {no_name.SerializeAsString(), "ModelSpec has no name specified."},
      {bad_tensor.SerializeAsString(), "tensor parsing error: x: tensor_content holds 1 bytes"},
      {"\x0a\x7f", "the bytes are not a tensorflow.serving.PredictRequest"},
      {std::string("\x0a\x02\x0a\x05", 4), "the bytes are not a tensorflow.serving.ModelSpec"},
  };
  for (const auto& row : rows) {
    const auto request = ParsePredict(row.body);
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Text(request.status()), StartsWith(row.text));
  }
}

TEST(ParsePredict, TheNumberOfInputsIsLimited) {
  std::string body = HalfPlusTwo().SerializeAsString();
  for (size_t i = 0; i < limits::kInputsMax; ++i) base::AppendBytesField(2, "", &body);
  EXPECT_THAT(Text(ParsePredict(body).status()), HasSubstr("more than 512 inputs"));
}

TEST(ParseModelSpec, ReadsASpecAlone) {
  tf::serving::ModelSpec proto;
  proto.set_name("m");
  proto.set_version_label("canary");
  const auto spec = ParseModelSpec(proto.SerializeAsString());
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->version_label, "canary");
  EXPECT_EQ(Text(ParseModelSpec("").status()), "ModelSpec has no name specified.");
}

TEST(WalkPredict, LooksIntoNoTensor) {
  tf::serving::PredictRequest request;
  request.mutable_model_spec()->set_name("m");
  tf::TensorProto& x = (*request.mutable_inputs())["x"];
  x.set_dtype(tf::DT_FLOAT);
  x.set_tensor_content("odd");
  const std::string body = request.SerializeAsString();
  absl::StatusOr<WalkedPredict> walked = WalkPredict(body);
  ASSERT_TRUE(walked.ok()) << walked.status();
  EXPECT_EQ(walked->spec.name, "m");
  const absl::Status status = DecodePredict(*std::move(walked)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(base::Message(status)), ::testing::StartsWith("tensor parsing error: x"));
}

TEST(PeekModelSpec, ReadsTheModelFromTheBeginningOfARequest) {
  tf::serving::PredictRequest request;
  request.mutable_model_spec()->set_name("half");
  request.mutable_model_spec()->mutable_version()->set_value(7);
  (*request.mutable_inputs())["x"] = Proto(tf::DT_FLOAT, {1000});
  const std::string bytes = request.SerializeAsString();
  for (const size_t size : {bytes.size(), size_t{20}}) {
    const auto spec = PeekModelSpec(std::string_view(bytes).substr(0, size));
    ASSERT_TRUE(spec.has_value()) << size;
    EXPECT_EQ(spec->name, "half");
    EXPECT_EQ(spec->version, 7);
  }
}

TEST(PeekModelSpec, SaysNothingWhereItIsNotPlainlyThere) {
  tf::serving::PredictRequest request;
  request.mutable_model_spec()->set_name("half");
  const std::string bytes = request.SerializeAsString();
  EXPECT_EQ(PeekModelSpec(std::string_view(bytes).substr(0, bytes.size() - 1)), std::nullopt);
  EXPECT_EQ(PeekModelSpec(""), std::nullopt);
  EXPECT_EQ(PeekModelSpec("\x0a"), std::nullopt);
  EXPECT_EQ(PeekModelSpec("\x12\x01x" + bytes), std::nullopt) << "it is not the first field";
  EXPECT_EQ(PeekModelSpec(std::string_view("\x0a\0", 2)), std::nullopt) << "it has no name";
}

TEST(PeekContent, FindsALargeTensorOfWhichOnlyTheBeginningIsThere) {
  tf::serving::PredictRequest request;
  request.mutable_model_spec()->set_name("half");
  tf::TensorProto x = Proto(tf::DT_FLOAT, {100, 1000});
  x.set_tensor_content(std::string(400'000, 'c'));
  (*request.mutable_inputs())["x"] = x;
  const std::string bytes = request.SerializeAsString();
  for (const size_t size : {bytes.size(), size_t{1000}}) {
    const auto content = PeekContent(std::string_view(bytes).substr(0, size), 65'536);
    ASSERT_TRUE(content.has_value()) << size;
    EXPECT_EQ(content->offset, bytes.find("ccc"));
    EXPECT_EQ(content->bytes, 400'000u);
  }
  EXPECT_FALSE(PeekContent(bytes, 400'001).has_value());
  EXPECT_FALSE(PeekContent(std::string_view(bytes).substr(0, 20), 1).has_value());
}

TEST(PeekContent, PassesSmallTensorsOnTheWay) {
  tf::serving::PredictRequest request;
  request.mutable_model_spec()->set_name("half");
  tf::TensorProto small = Proto(tf::DT_FLOAT, {1});
  small.set_tensor_content("1234");
  (*request.mutable_inputs())["a"] = small;
  const std::string first = request.SerializeAsString();
  tf::serving::PredictRequest rest;
  tf::TensorProto large = Proto(tf::DT_FLOAT, {1000});
  large.set_tensor_content(std::string(4000, 'c'));
  (*rest.mutable_inputs())["b"] = large;
  const std::string bytes = first + rest.SerializeAsString();
  const auto content = PeekContent(std::string_view(bytes).substr(0, 200), 1000);
  ASSERT_TRUE(content.has_value());
  EXPECT_EQ(content->offset, bytes.find("ccc"));
}

TEST(PeekContent, FindsNothingInWhatIsNoRequest) {
  for (const std::string_view bytes :
       {std::string_view(""), std::string_view("\x12"), std::string_view("\x12\xff\xff\xff\xff"),
        std::string_view("\x13\x12\x22"), std::string_view("\x12\x7f\x12\x7f\x22\x00", 6),
        std::string_view("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}) {
    EXPECT_FALSE(PeekContent(bytes, 0).has_value());
  }
}

}  // namespace
}  // namespace tensord::wire
