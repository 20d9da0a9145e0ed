// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/signatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "engine/litert/signature_metadata.h"

namespace tensord::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int32_t kFloat32 = 1;
constexpr int32_t kInt4 = 18;

// What the published model "half plus two" with signature metadata holds: serving_default, which
// takes "tflite_input:0" as x and gives "y:0" as y.
constexpr char kMetadata[] =
    "serving_default\0W\n!\n\x01x\x12\x1c\n\x0etflite_input:0\x10\x01\x1a\x08\x12\x02\x08\x01\x12"
    "\x02\x08\x01\x12\x16\n\x01y\x12\x11\n\x03y:0\x10\x01\x1a\x08\x12\x02\x08\x01\x12\x02\x08\x01"
    "\x1a\x1atensorflow/serving/predict\0\x01j\x01\x01\x01]\x14\x02$\x01";

std::string Metadata() { return std::string(kMetadata, sizeof(kMetadata) - 1); }

LiteEndpoint Endpoint(std::string name, std::string tensor, std::vector<int32_t> dims) {
  return {.name = std::move(name),
          .tensor = {.name = std::move(tensor), .type = kFloat32, .dims = std::move(dims)}};
}

LiteFile OneRunner(std::string key, std::vector<LiteEndpoint> inputs,
                   std::vector<LiteEndpoint> outputs) {
  LiteFile file;
  file.runners.push_back({.key = std::move(key),
                          .main = true,
                          .inputs = std::move(inputs),
                          .outputs = std::move(outputs),
                          .ops = {}});
  return file;
}

std::string Words(const absl::Status& status) { return std::string(base::Message(status)); }

TEST(PlanSignatures, TakesTheConvertersOwn) {
  const LiteFile file = OneRunner(
      "serving_default",
      {Endpoint("b", "serving_default_b:0", {-1}), Endpoint("a", "serving_default_a:0", {-1, 3})},
      {Endpoint("y", "PartitionedCall:0", {})});
  const LiteSignatures plan = *PlanSignatures(file);
  ASSERT_THAT(plan.list, SizeIs(1));
  EXPECT_EQ(plan.list[0].name, "serving_default");
  EXPECT_EQ(plan.list[0].method_name, "tensorflow/serving/predict");
  ASSERT_THAT(plan.list[0].inputs, SizeIs(2));
  EXPECT_EQ(plan.list[0].inputs[0].name, "a");
  EXPECT_THAT(plan.list[0].inputs[0].shape.dims, ElementsAre(-1, 3));
  EXPECT_FALSE(plan.list[0].outputs[0].shape.unknown_rank);
  // By name in the signature, by the file's order in the runner.
  EXPECT_THAT(plan.bindings[0].inputs, ElementsAre(1, 0));
}

TEST(PlanSignatures, MakesOneOfTensorNamesWhereTheFileHasNone) {
  const LiteSignatures plan = *PlanSignatures(OneRunner(
      kLiteRtNoSignature, {Endpoint("x:0", "x:0", {1})}, {Endpoint("Identity", "Identity", {1})}));
  EXPECT_EQ(plan.list[0].name, "serving_default");
  EXPECT_EQ(plan.list[0].inputs[0].name, "x");
  EXPECT_EQ(plan.list[0].inputs[0].tensor_name, "x:0");
  EXPECT_EQ(plan.list[0].outputs[0].name, "Identity");
}

TEST(PlanSignatures, TakesThoseOfTheMetadataFirst) {
  LiteFile file = OneRunner(kLiteRtNoSignature, {Endpoint("tflite_input", "tflite_input", {1, 1})},
                            {Endpoint("y", "y", {1, 1})});
  file.signature_metadata = Metadata();
  const LiteSignatures plan = *PlanSignatures(file);
  EXPECT_EQ(plan.list[0].inputs[0].name, "x");
  EXPECT_EQ(plan.list[0].outputs[0].name, "y");
  file.runners[0].inputs[0].tensor.name = "other";
  EXPECT_THAT(Words(PlanSignatures(file).status()),
              HasSubstr("signature input 'x' references an unknown tensor 'tflite_input:0'"));
}

TEST(PlanSignatures, RefusesWhatCannotBeCalled) {
  LiteFile file = OneRunner("f", {Endpoint("x", "x", {1})}, {Endpoint("y", "y", {1})});
  file.runners[0].inputs[0].tensor.type = kInt4;
  EXPECT_THAT(Words(PlanSignatures(file).status()),
              HasSubstr("signature 'f': 'x' has TensorFlow Lite's type number 18"));
  file = OneRunner(kLiteRtNoSignature, {Endpoint("", "x:0", {1}), Endpoint("", "x:1", {1})}, {});
  EXPECT_THAT(Words(PlanSignatures(file).status()), HasSubstr("two inputs of the model"));
  EXPECT_FALSE(PlanSignatures(LiteFile()).ok());
}

TEST(ParseSignatureMetadata, RefusesWhateverIsCutOrChanged) {
  EXPECT_THAT(*ParseSignatureMetadata(Metadata()), SizeIs(1));
  EXPECT_THAT(*ParseSignatureMetadata(""), IsEmpty());
  const std::string whole = Metadata();
  for (size_t at = 0; at < whole.size(); ++at) {
    // Never beyond its bounds, whatever comes of it: the sanitizers look on.
    (void)ParseSignatureMetadata(whole.substr(at));
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = byte;
      (void)ParseSignatureMetadata(changed);
    }
  }
  EXPECT_FALSE(ParseSignatureMetadata("x").ok());
  EXPECT_FALSE(ParseSignatureMetadata(whole.substr(0, whole.size() - 1)).ok());
}

TEST(LiteStatefulReason, NamesTheFirstOperationThatKeepsSomething) {
  LiteFile file = OneRunner("count", {}, {});
  file.runners[0].ops = {0, 142, 143};
  EXPECT_EQ(LiteStatefulReason(file), "");
  file.runners[0].ops = {0, 144};
  EXPECT_EQ(LiteStatefulReason(file), "ASSIGN_VARIABLE in signature 'count'");
}

}  // namespace
}  // namespace tensord::engine
