// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tensord/classification.pb.h"
#include "tensord/inference.pb.h"
#include "wire/testing/tensors.h"

namespace tensord::wire {
namespace {

namespace tf = ::tensorflow;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StringsOf;

// A tf.Example with one int64 feature.
tf::Example Row(const std::string& feature, int64_t value) {
  tf::Example example;
  (*example.mutable_features()->mutable_feature())[feature].mutable_int64_list()->add_value(value);
  return example;
}

std::string Message(const absl::Status& status) { return std::string(base::Message(status)); }

absl::StatusOr<tensor::Tensor> ReadOne(const tf::serving::Input& input) {
  const std::string bytes = input.SerializeAsString();
  const std::string_view pieces[] = {bytes};
  return ReadExamples(pieces);
}

TEST(WalkInference, FindsTheModelAndTheInput) {
  tf::serving::ClassificationRequest request;
  request.mutable_model_spec()->set_name("m");
  request.mutable_model_spec()->set_signature_name("s");
  request.mutable_model_spec()->mutable_version()->set_value(3);
  *request.mutable_input()->mutable_example_list()->add_examples() = Row("x", 1);
  const std::string body = request.SerializeAsString();
  const auto walked = WalkInference(body);
  ASSERT_TRUE(walked.ok()) << walked.status();
  EXPECT_EQ(walked->tasks.front().spec.name, "m");
  EXPECT_EQ(walked->tasks.front().spec.signature_name, "s");
  EXPECT_EQ(walked->tasks.front().spec.version, 3);
  const auto examples = ReadExamples(walked->input);
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_THAT(StringsOf(examples->view()), ElementsAre(Row("x", 1).SerializeAsString()));
}

TEST(WalkInference, AsksForAModelWithAName) {
  tf::serving::ClassificationRequest request;
  EXPECT_EQ(Message(WalkInference(request.SerializeAsString()).status()), "Missing ModelSpec");
  request.mutable_model_spec();
  EXPECT_EQ(Message(WalkInference(request.SerializeAsString()).status()),
            "ModelSpec has no name specified.");
  EXPECT_THAT(Message(WalkInference("\x0a\xff").status()), HasSubstr("the bytes are not a"));
}

TEST(WalkMultiInference, KeepsTheTasksInOrder) {
  tf::serving::MultiInferenceRequest request;
  for (const char* signature : {"b", "a"}) {
    auto* const task = request.add_tasks();
    task->mutable_model_spec()->set_name("m");
    task->mutable_model_spec()->set_signature_name(signature);
    task->set_method_name("tensorflow/serving/regress");
  }
  const std::string body = request.SerializeAsString();
  const auto walked = WalkMultiInference(body);
  ASSERT_TRUE(walked.ok()) << walked.status();
  ASSERT_EQ(walked->tasks.size(), 2u);
  EXPECT_EQ(walked->tasks[0].spec.signature_name, "b");
  EXPECT_EQ(walked->tasks[1].spec.signature_name, "a");
  EXPECT_EQ(walked->tasks[1].method, "tensorflow/serving/regress");
}

TEST(WalkMultiInference, RefusesNoTasksAndTooMany) {
  tf::serving::MultiInferenceRequest request;
  EXPECT_EQ(Message(WalkMultiInference("").status()), "ModelSpec has no name specified.");
  for (int i = 0; i < 65; ++i) request.add_tasks()->mutable_model_spec()->set_name("m");
  EXPECT_THAT(Message(WalkMultiInference(request.SerializeAsString()).status()),
              HasSubstr("more than 64 tasks"));
}

TEST(ReadExamples, PutsTheContextBeforeEachExample) {
  tf::serving::Input input;
  auto* const list = input.mutable_example_list_with_context();
  *list->mutable_context() = Row("shared", 9);
  *list->add_examples() = Row("x", 1);
  *list->add_examples() = Row("shared", 5);
  const auto examples = ReadOne(input);
  ASSERT_TRUE(examples.ok()) << examples.status();
  const std::vector<std::string> rows = StringsOf(examples->view());
  ASSERT_EQ(rows.size(), 2u);
  tf::Example merged;
  ASSERT_TRUE(merged.ParseFromString(rows[0]));
  EXPECT_EQ(merged.features().feature().at("shared").int64_list().value(0), 9);
  EXPECT_EQ(merged.features().feature().at("x").int64_list().value(0), 1);
  // What the example says counts.
  ASSERT_TRUE(merged.ParseFromString(rows[1]));
  EXPECT_EQ(merged.features().feature().at("shared").int64_list().value(0), 5);
}

TEST(ReadExamples, RefusesWhatIsEmpty) {
  tf::serving::Input input;
  EXPECT_EQ(Message(ReadOne(input).status()), "Input is empty.");
  input.mutable_example_list();
  EXPECT_EQ(Message(ReadOne(input).status()), "Input is empty.");
  *input.mutable_example_list_with_context()->mutable_context() = Row("x", 1);
  EXPECT_EQ(Message(ReadOne(input).status()), "Input is empty.");
  EXPECT_EQ(Message(ReadExamples({}).status()), "Input is empty.");
}

TEST(ReadExamples, AnEmptyExampleIsAnExample) {
  tf::serving::Input input;
  input.mutable_example_list()->add_examples();
  const auto examples = ReadOne(input);
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_THAT(StringsOf(examples->view()), ElementsAre(""));
}

TEST(ReadExamples, PiecesMergeAsProtobufMergesThem) {
  tf::serving::Input plain;
  *plain.mutable_example_list()->add_examples() = Row("a", 1);
  tf::serving::Input with_context;
  *with_context.mutable_example_list_with_context()->add_examples() = Row("b", 2);
  *with_context.mutable_example_list_with_context()->mutable_context() = Row("c", 3);
  const std::string one = plain.SerializeAsString();
  const std::string two = with_context.SerializeAsString();
  for (const auto& parts : {std::vector{one, one}, std::vector{one, two}, std::vector{two, one},
                            std::vector{two, two}, std::vector{one, two, one, one}}) {
    std::string whole;
    for (const std::string& part : parts) whole += part;
    tf::serving::Input merged;
    ASSERT_TRUE(merged.ParseFromString(whole));
    const std::vector<std::string_view> views(parts.begin(), parts.end());
    const auto examples = ReadExamples(views);
    ASSERT_TRUE(examples.ok()) << examples.status();
    const auto expected = ReadOne(merged);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(StringsOf(examples->view()).size(), StringsOf(expected->view()).size());
  }
}

TEST(ReadExamples, AContextThatWouldFillTheMemoryIsRefused) {
  tf::serving::Input input;
  auto* const list = input.mutable_example_list_with_context();
  (*list->mutable_context()->mutable_features()->mutable_feature())["x"]
      .mutable_bytes_list()
      ->add_value(std::string(1 << 20, 'x'));
  for (int i = 0; i < 300; ++i) list->add_examples();
  EXPECT_THAT(Message(ReadOne(input).status()), HasSubstr("send fewer examples"));
}

TEST(ReadExamples, ThePiecesOfAMessageAreLimited) {
  std::string body = "\x0a\x03\x0a\x01m";  // The model's name.
  for (int i = 0; i < 600; ++i) body += std::string("\x12\x00", 2);
  EXPECT_THAT(Message(WalkInference(body).status()), HasSubstr("more than 512 pieces"));
  std::string input;
  for (int i = 0; i < 600; ++i) input += std::string("\x0a\x00", 2);
  const std::string_view piece = input;
  EXPECT_THAT(Message(ReadExamples({&piece, 1}).status()), HasSubstr("more than 512 pieces"));
}

TEST(ReadExamples, EveryCutIsAnError) {
  tf::serving::Input input;
  *input.mutable_example_list_with_context()->mutable_context() = Row("c", 3);
  for (int i = 0; i < 3; ++i) {
    *input.mutable_example_list_with_context()->add_examples() = Row("x", i);
  }
  const std::string bytes = input.SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string_view cut = std::string_view(bytes).substr(0, size);
    EXPECT_FALSE(ReadExamples({&cut, 1}).ok()) << size;
  }
}

}  // namespace
}  // namespace tensord::wire
