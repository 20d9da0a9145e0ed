// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/signatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/text.h"
#include "tensord/get_model_metadata.pb.h"
#include "wire/testing/tensors.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace tf = ::tensorflow;

tf::TensorInfo Info(const std::string& name, tf::DataType dtype, const std::vector<int64_t>& dims) {
  tf::TensorInfo info;
  info.set_name(name);
  info.set_dtype(dtype);
  info.mutable_tensor_shape();
  for (const int64_t dim : dims) info.mutable_tensor_shape()->add_dim()->set_size(dim);
  return info;
}

tf::SignatureDef HalfPlusTwo() {
  tf::SignatureDef def;
  def.set_method_name("tensorflow/serving/predict");
  (*def.mutable_inputs())["x"] = Info("x:0", tf::DT_FLOAT, {-1, 1});
  (*def.mutable_outputs())["y"] = Info("y:0", tf::DT_FLOAT, {-1, 1});
  return def;
}

absl::StatusOr<tensor::SignatureList> ParseOne(const tf::SignatureDef& def) {
  tf::serving::SignatureDefMap map;
  (*map.mutable_signature_def())["s"] = def;
  return ParseSignatures(map.SerializeAsString());
}

TEST(ParseSignatures, SortsSignaturesInputsAndOutputs) {
  tf::serving::SignatureDefMap map;
  for (const char* name : {"serving_default", "b", "a"}) {
    tf::SignatureDef def = HalfPlusTwo();
    (*def.mutable_inputs())["a"] = Info("a:0", tf::DT_STRING, {});
    (*map.mutable_signature_def())[name] = def;
  }
  const auto signatures = ParseSignatures(map.SerializeAsString());
  ASSERT_TRUE(signatures.ok()) << signatures.status();
  ASSERT_EQ(signatures->size(), 3u);
  EXPECT_EQ((*signatures)[0].name, "a");
  EXPECT_EQ((*signatures)[2].name, "serving_default");
  const tensor::Signature& signature = (*signatures)[1];
  EXPECT_EQ(signature.method_name, "tensorflow/serving/predict");
  ASSERT_EQ(signature.inputs.size(), 2u);
  EXPECT_EQ(signature.inputs[0].name, "a");
  EXPECT_EQ(signature.inputs[0].dtype, DType::kString);
  EXPECT_FALSE(signature.inputs[0].shape.unknown_rank);
  EXPECT_EQ(signature.inputs[1].tensor_name, "x:0");
  EXPECT_THAT(signature.inputs[1].shape.dims, ElementsAre(-1, 1));
  EXPECT_TRUE(signature.inputs[1].dense);
}

TEST(ParseSignatures, UnknownRanksSparseTensorsAndReferencesAreTold) {
  tf::SignatureDef def = HalfPlusTwo();
  (*def.mutable_inputs())["x"].mutable_tensor_shape()->set_unknown_rank(true);
  (*def.mutable_inputs())["ref"] = Info("v:0", tf::DT_INT64_REF, {1});
  (*def.mutable_outputs())["sparse"].mutable_coo_sparse()->set_values_tensor_name("v:0");
  (*def.mutable_outputs())["ragged"].mutable_composite_tensor();
  (*def.mutable_outputs())["none"].set_dtype(tf::DT_FLOAT);
  const auto signatures = ParseOne(def);
  ASSERT_TRUE(signatures.ok()) << signatures.status();
  const tensor::Signature& signature = signatures->front();
  EXPECT_TRUE(signature.inputs[static_cast<size_t>(signature.InputIndex("x"))].shape.unknown_rank);
  EXPECT_EQ(signature.inputs[static_cast<size_t>(signature.InputIndex("ref"))].dtype,
            DType::kInt64);
  for (const char* name : {"sparse", "ragged", "none"}) {
    EXPECT_FALSE(signature.outputs[static_cast<size_t>(signature.OutputIndex(name))].dense) << name;
  }
  EXPECT_TRUE(signature.outputs[static_cast<size_t>(signature.OutputIndex("y"))].dense);
}

TEST(ParseSignatures, TypesThatNoMessageCarriesAreNotDense) {
  tf::SignatureDef def = HalfPlusTwo();
  for (const int number : {0, 11, 20, 21, 25}) {
    tf::TensorInfo& info = (*def.mutable_outputs())["v" + std::to_string(number)];
    info.set_name("v:0");
    info.set_dtype(static_cast<tf::DataType>(number));
  }
  const auto signatures = ParseOne(def);
  ASSERT_TRUE(signatures.ok()) << signatures.status();
  for (const tensor::Endpoint& output : signatures->front().outputs) {
    EXPECT_EQ(output.dense, output.name == "y") << output.name;
  }
}

TEST(ParseSignatures, DefaultsBecomeTensors) {
  tf::SignatureDef def = HalfPlusTwo();
  (*def.mutable_inputs())["k"] = Info("k:0", tf::DT_STRING, {});
  tf::TensorProto& x = (*def.mutable_defaults())["x"];
  x.set_dtype(tf::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(2);
  x.set_tensor_content(std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  tf::TensorProto& k = (*def.mutable_defaults())["k"];
  k.set_dtype(tf::DT_STRING);
  k.add_string_val("word");
  (*def.mutable_defaults())["nobody"] = x;
  const auto signatures = ParseOne(def);
  ASSERT_TRUE(signatures.ok()) << signatures.status();
  const tensor::Signature& signature = signatures->front();
  ASSERT_TRUE(signature.inputs[0].default_value.has_value());
  EXPECT_THAT(testing::StringsOf(signature.inputs[0].default_value->view()), ElementsAre("word"));
  EXPECT_THAT(testing::ValuesOf<float>(signature.inputs[1].default_value->view()),
              ElementsAre(1.0f, 2.0f));
}

TEST(ParseSignatures, WhatIsMalformedIsNamed) {
  const struct {
    std::string text;
    std::function<void(tf::SignatureDef*)> break_it;
  } rows[] = {
      {"signature \"s\": input \"x\": a dim is -2",
       [](auto* def) {
         (*def->mutable_inputs())["x"].mutable_tensor_shape()->mutable_dim(0)->set_size(-2);
       }},
      {"output \"y\": rank 300 is above the limit of 254",
       [](auto* def) {
         (*def->mutable_outputs())["y"] = Info("y:0", tf::DT_FLOAT, std::vector<int64_t>(300, 1));
       }},
      {"more than 512 inputs",
       [](auto* def) {
         for (size_t i = 0; i < limits::kInputsMax; ++i) (*def->mutable_inputs())[base::Cat(i)];
       }},
      {"default of input \"x\": the default is int32, the input float",
       [](auto* def) { (*def->mutable_defaults())["x"].set_dtype(tf::DT_INT32); }},
      {"default of input \"x\": tensor_content holds 1 bytes",
       [](auto* def) {
         (*def->mutable_defaults())["x"].set_dtype(tf::DT_FLOAT);
         (*def->mutable_defaults())["x"].set_tensor_content("1");
       }},
  };
  for (const auto& row : rows) {
    tf::SignatureDef def = HalfPlusTwo();
    row.break_it(&def);
    const auto signatures = ParseOne(def);
    EXPECT_EQ(signatures.status().code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_THAT(std::string(base::Message(signatures.status())), HasSubstr(row.text));
  }
  EXPECT_THAT(std::string(base::Message(ParseSignatures("\x0a\x7f").status())),
              HasSubstr("not a tensorflow.serving.SignatureDefMap"));
  EXPECT_TRUE(ParseSignatures("")->empty());
}

TEST(ParseSignatures, TheNumberOfSignaturesIsLimited) {
  tf::serving::SignatureDefMap map;
  for (size_t i = 0; i <= limits::kSignaturesMax; ++i) {
    (*map.mutable_signature_def())[base::Cat(i)];
  }
  EXPECT_THAT(std::string(base::Message(ParseSignatures(map.SerializeAsString()).status())),
              HasSubstr("more than 1024 signatures"));
}

// A map of one signature whose input is a composite of a composite of ... `depth` times.
std::string NestedComposites(int depth) {
  std::string info;
  for (int i = 0; i < depth; ++i) {
    std::string composite;
    base::AppendBytesField(2, info, &composite);
    info.clear();
    base::AppendBytesField(5, composite, &info);
  }
  std::string input;
  base::AppendBytesField(2, info, &input);
  std::string def;
  base::AppendBytesField(1, input, &def);
  std::string entry;
  base::AppendBytesField(2, def, &entry);
  std::string map;
  base::AppendBytesField(1, entry, &map);
  return map;
}

TEST(ParseSignatures, DeeplyNestedCompositesAreRefusedAndDoNotOverflowTheStack) {
  EXPECT_TRUE(ParseSignatures(NestedComposites(10)).ok());
  EXPECT_FALSE(ParseSignatures(NestedComposites(3000)).ok());
}

}  // namespace
}  // namespace tensord::wire
