// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <fstream>

#include "base/text.h"
#include "tests/worker/process_test.h"

namespace tensord::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ModelsTest : public ProcessTest {};

// The place of an output among the signature's outputs, which are sorted by name.
size_t IndexOf(const TestWorker& worker, std::string_view signature, std::string_view output) {
  const int number = tensor::SignatureIndex(worker.signatures(), signature);
  return static_cast<size_t>(worker.signatures()[static_cast<size_t>(number)].OutputIndex(output));
}

TEST_F(ModelsTest, AVersionOneModelAnswersAndItsWarmUpWarns) {
  const auto worker = Load("half_plus_two/00000123");
  ASSERT_NE(worker, nullptr);
  const tensor::Tensor x = Floats({1, 2, 5});
  const auto outputs = Outputs(worker.get(), "serving_default", {&x});
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_THAT(Values<float>(outputs[0]), ElementsAre(2.5f, 3.0f, 4.5f));
  EXPECT_EQ(worker->info().runtime_version, "2.21.0");
  EXPECT_THAT(worker->info().devices, ElementsAre(HasSubstr("CPU:0")));
  EXPECT_EQ(worker->info().stateful_reason, "");
  // An empty string is no tf.Example; the four signatures that parse one say so.
  EXPECT_THAT(worker->info().warnings, SizeIs(4));
  EXPECT_EQ(worker->info().warm_up_runs, 5u);
}

TEST_F(ModelsTest, VersionTwoAndKerasModelsAnswer) {
  const auto half = Load("half/2");
  ASSERT_NE(half, nullptr);
  const tensor::Tensor x = Floats({4});
  EXPECT_THAT(Values<float>(Outputs(half.get(), "serving_default", {&x})[0]), ElementsAre(5.0f));

  const auto keras = Load("keras_mlp/1");
  ASSERT_NE(keras, nullptr);
  EXPECT_EQ(keras->info().stateful_reason, "");
  const tensor::Tensor features =
      MakeTensor<float>(tensor::DType::kFloat, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<float> y =
      Values<float>(Outputs(keras.get(), "serving_default", {&features})[0]);
  ASSERT_THAT(y, SizeIs(6));
  EXPECT_NEAR(y[0] + y[1] + y[2], 1, 1e-5);
}

TEST_F(ModelsTest, SeveralInputsAndOutputsGoByTheirSortedNames) {
  const auto worker = Load("two_in/1");
  ASSERT_NE(worker, nullptr);
  const tensor::Tensor a = Floats({10, 20});
  const tensor::Tensor b = Floats({1, 2});
  const auto outputs = Outputs(worker.get(), "serving_default", {&a, &b});
  ASSERT_THAT(outputs, SizeIs(2));
  EXPECT_THAT(Values<float>(outputs[IndexOf(*worker, "serving_default", "difference")]),
              ElementsAre(9, 18));
  EXPECT_THAT(Values<float>(outputs[IndexOf(*worker, "serving_default", "sum")]),
              ElementsAre(11, 22));
}

TEST_F(ModelsTest, StringsTravelWhole) {
  const auto worker = Load("strings/1");
  ASSERT_NE(worker, nullptr);
  const std::string long_text(100'000, 'x');
  const std::string zeros("a\0b", 3);
  const tensor::Tensor s = Strings({4}, {"", "abc", zeros, long_text});
  const auto outputs = Outputs(worker.get(), "serving_default", {&s});
  ASSERT_THAT(outputs, SizeIs(4));
  EXPECT_THAT(StringValues(outputs[IndexOf(*worker, "serving_default", "echo")]),
              ElementsAre("", "abc", zeros, long_text));
  EXPECT_THAT(StringValues(outputs[IndexOf(*worker, "serving_default", "upper")])[1], "ABC");
  EXPECT_THAT(Values<int32_t>(outputs[IndexOf(*worker, "serving_default", "length")]),
              ElementsAre(0, 3, 3, 100'000));
}

TEST_F(ModelsTest, ALookupTableReadsItsAssetAndIsNotStateful) {
  const auto worker = Load("lookup/1");
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(worker->info().stateful_reason, "");
  const tensor::Tensor word = Strings({3}, {"cherry", "apple", "no such"});
  EXPECT_THAT(Values<int64_t>(Outputs(worker.get(), "serving_default", {&word})[0]),
              ElementsAre(2, 0, -1));
}

TEST_F(ModelsTest, ACounterIsStatefulAndCountsOnlyClients) {
  const auto worker = Load("counter/1");
  ASSERT_NE(worker, nullptr);
  EXPECT_THAT(worker->info().stateful_reason, HasSubstr("Assign"));
  EXPECT_EQ(worker->info().warm_up_runs, 0u);
  const tensor::Tensor delta = MakeTensor<float>(tensor::DType::kFloat, {}, {2.5f});
  EXPECT_THAT(Values<float>(Outputs(worker.get(), "incr_counter", {})[0]), ElementsAre(1));
  EXPECT_THAT(Values<float>(Outputs(worker.get(), "incr_counter_by", {&delta})[0]),
              ElementsAre(3.5));
  EXPECT_THAT(Values<float>(Outputs(worker.get(), "get_counter", {})[0]), ElementsAre(3.5));
}

TEST_F(ModelsTest, EveryDtypeTravelsThereAndBack) {
  const auto worker = Load("echo/1");
  ASSERT_NE(worker, nullptr);
  size_t fixed_width = 0;
  for (const tensor::Signature& signature : worker->signatures()) {
    if (signature.name.starts_with("__")) continue;
    const tensor::DType dtype = signature.inputs[0].dtype;
    if (dtype == tensor::DType::kString) continue;
    ++fixed_width;
    // Small numbers are valid in each type, and 0 and 1 are what a bool can be.
    std::vector<uint8_t> bytes(6 * tensor::ElementBytes(dtype));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 2);
    const tensor::Tensor x = MakeTensor(dtype, {2, 3}, bytes);
    const auto outputs = Outputs(worker.get(), signature.name, {&x});
    ASSERT_THAT(outputs, SizeIs(1)) << signature.name;
    EXPECT_EQ(outputs[0].dtype, dtype);
    EXPECT_EQ(outputs[0].shape, x.shape);
    EXPECT_EQ(Values<uint8_t>(outputs[0]), bytes) << signature.name;
  }
  EXPECT_EQ(fixed_width, 16u);  // Fifteen types, and serving_default once more.
}

TEST_F(ModelsTest, ScalarsEmptyTensorsAndRankEightTravel) {
  const auto worker = Load("echo/1");
  ASSERT_NE(worker, nullptr);
  for (const tensor::Shape& shape : {tensor::Shape{}, tensor::Shape{0}, tensor::Shape{3, 0, 2},
                                     tensor::Shape{1, 2, 1, 1, 2, 1, 1, 3}}) {
    const std::vector<float> values(static_cast<size_t>(shape.elements()), 1.5f);
    const tensor::Tensor x = MakeTensor(tensor::DType::kFloat, shape, values);
    const auto outputs = Outputs(worker.get(), "float32", {&x});
    ASSERT_THAT(outputs, SizeIs(1)) << shape.ToString();
    EXPECT_EQ(outputs[0].shape, shape);
    EXPECT_EQ(Values<float>(outputs[0]), values);
    const tensor::Tensor s = Strings(shape, std::vector<std::string>(values.size(), "text"));
    const auto strings = Outputs(worker.get(), "string", {&s});
    ASSERT_THAT(strings, SizeIs(1)) << shape.ToString();
    EXPECT_EQ(StringValues(strings[0]), StringValues(s));
  }
}

TEST_F(ModelsTest, TheRuntimesErrorsComeWithTheirCodes) {
  const auto worker = Load("rank2/1");
  ASSERT_NE(worker, nullptr);
  const tensor::Tensor bad = Floats({1, 2, 3});
  EXPECT_EQ(StatusOf(worker.get(), "serving_default", {&bad}).code(),
            absl::StatusCode::kInvalidArgument);
  const tensor::Tensor ints = MakeTensor<int32_t>(tensor::DType::kInt32, {1, 3}, {1, 2, 3});
  EXPECT_EQ(StatusOf(worker.get(), "serving_default", {&ints}).code(),
            absl::StatusCode::kInvalidArgument);
  // And the worker goes on.
  const tensor::Tensor good = MakeTensor<float>(tensor::DType::kFloat, {1, 3}, {1, 1, 1});
  EXPECT_THAT(Values<float>(Outputs(worker.get(), "serving_default", {&good})[0]),
              ElementsAre(6, 9));
}

TEST_F(ModelsTest, ARunThatIsNoneIsAnsweredAndHarmsNothing) {
  const auto worker = Load("half/1");
  ASSERT_NE(worker, nullptr);
  const tensor::Tensor x = Floats({1});
  channel::Run run = worker->Prepare("serving_default", {&x});
  const channel::Run good = run;
  run.signature = 99;
  ASSERT_TRUE(worker->Send(channel::RunRecord{{run}}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(worker->ReceiveCompletion()->completion.status));
  run = good;
  run.inputs.clear();
  ASSERT_TRUE(worker->Send(channel::RunRecord{{run}}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(worker->ReceiveCompletion()->completion.status));
  run = good;
  run.inputs[0].offset = uint64_t{1} << 40;
  ASSERT_TRUE(worker->Send(channel::RunRecord{{run}}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(worker->ReceiveCompletion()->completion.status));
  EXPECT_THAT(Values<float>(Outputs(worker.get(), "serving_default", {&x})[0]), ElementsAre(2.5));
}

TEST_F(ModelsTest, AnOutputThatDoesNotFitIsHeldUntilCollected) {
  const auto worker = Load("fill/1");
  ASSERT_NE(worker, nullptr);
  const tensor::Tensor dims = MakeTensor<int32_t>(tensor::DType::kInt32, {2}, {2000, 1000});
  const auto held = worker->Run("serving_default", {&dims});
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(held->completion.held);
  EXPECT_EQ(held->completion.held_bytes, 8'000'000u);
  EXPECT_THAT(held->outputs, IsEmpty());

  const auto segment = channel::ResponseSegment::Create(held->completion.held_bytes);
  ASSERT_TRUE(segment.ok());
  ASSERT_TRUE(worker
                  ->Send(channel::CollectRecord{.id = held->completion.id,
                                                .response_bytes = segment->size()},
                         {segment->fd()})
                  .ok());
  const auto collected = worker->ReceiveCompletion();
  ASSERT_TRUE(collected.ok());
  ASSERT_TRUE(collected->completion.status.ok()) << collected->completion.status;
  const auto outputs = worker->Copy(collected->completion, *segment);
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_EQ(outputs[0].shape, (tensor::Shape{2000, 1000}));
  EXPECT_EQ(Values<float>(outputs[0]), std::vector<float>(2'000'000, 1));

  // Outputs can also be forgotten; there is no answer to that.
  const auto again = worker->Run("serving_default", {&dims});
  ASSERT_TRUE(again.ok() && again->completion.held);
  ASSERT_TRUE(
      worker->Send(channel::CollectRecord{.id = again->completion.id, .response_bytes = 0}).ok());
  const tensor::Tensor small = MakeTensor<int32_t>(tensor::DType::kInt32, {2}, {1, 1});
  EXPECT_THAT(Values<float>(Outputs(worker.get(), "serving_default", {&small})[0]), ElementsAre(1));
}

TEST_F(ModelsTest, AnInputPassedThroughAndHeldLetsItsSlotGo) {
  const auto worker = Load("echo/1");
  ASSERT_NE(worker, nullptr);
  const tensor::Tensor x = Floats(std::vector<float>(100, 2.5f));
  const auto held = worker->Run("float32", {&x}, 64);
  ASSERT_TRUE(held.ok() && held->completion.held);
  EXPECT_FALSE(held->completion.inputs_retained);
  // The slot is reused before the outputs are collected, which must not show.
  const tensor::Tensor other = Floats(std::vector<float>(100, 7));
  worker->Prepare("float32", {&other});
  const auto segment = channel::ResponseSegment::Create(4096);
  ASSERT_TRUE(segment.ok());
  ASSERT_TRUE(worker
                  ->Send(channel::CollectRecord{.id = held->completion.id, .response_bytes = 4096},
                         {segment->fd()})
                  .ok());
  const auto collected = worker->ReceiveCompletion();
  ASSERT_TRUE(collected.ok());
  EXPECT_EQ(Values<float>(worker->Copy(collected->completion, *segment)[0]),
            std::vector<float>(100, 2.5f));
}

TEST_F(ModelsTest, ATensorOfItsOwnSegmentsTravels) {
  const auto worker = Load("bench_image/1");
  ASSERT_NE(worker, nullptr);
  constexpr int64_t kRows = 20;  // 12 MB: three times the standard segment.
  const auto request = channel::RequestSegment::Create(kRows * 602'112);
  const auto response = channel::ResponseSegment::Create(4096);
  ASSERT_TRUE(request.ok() && response.ok());
  for (int64_t row = 0; row < kRows; ++row) {
    const float value = static_cast<float>(row);
    std::memcpy(request->Bytes(static_cast<uint64_t>(row) * 602'112, 4).data(), &value, 4);
  }
  channel::Run run;
  run.id = 77;
  run.signature =
      static_cast<uint32_t>(tensor::SignatureIndex(worker->signatures(), "serving_default"));
  run.own_request_segment = true;
  run.own_response_segment = true;
  run.response_bytes = 4096;
  run.inputs = {{.dtype = tensor::DType::kFloat,
                 .shape = {kRows, 224, 224, 3},
                 .offset = 0,
                 .bytes = request->size()}};
  for (int repeat = 0; repeat < 3; ++repeat) {
    ASSERT_TRUE(worker->Send(channel::RunRecord{{run}}, {request->fd(), response->fd()}).ok());
    const auto answer = worker->ReceiveCompletion();
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_TRUE(answer->completion.status.ok()) << answer->completion.status;
    EXPECT_FALSE(answer->completion.inputs_retained);
    const auto outputs = worker->Copy(answer->completion, *response);
    EXPECT_EQ(outputs[0].shape, (tensor::Shape{kRows, 3}));
    EXPECT_EQ(Values<float>(outputs[0])[19 * 3], 19);
    ++run.id;
  }
  // The segments are unmapped after each run.
  EXPECT_THAT(ReadFile(base::Cat("/proc/", worker->pid(), "/maps")),
              ::testing::Not(HasSubstr("no such")));
}

TEST_F(ModelsTest, RunsOfOneRecordAreAnsweredInFull) {
  const auto worker = Load("bench_identity/1");
  ASSERT_NE(worker, nullptr);
  channel::RunRecord record;
  for (int i = 0; i < 20; ++i) {
    const tensor::Tensor x =
        MakeTensor(tensor::DType::kFloat, {1, 16}, std::vector<float>(16, static_cast<float>(i)));
    channel::Run run = worker->Prepare("serving_default", {&x}, static_cast<uint64_t>(i) * 64);
    run.response_offset = static_cast<uint64_t>(i) * 64;
    run.response_bytes = 64;
    record.runs.push_back(std::move(run));
  }
  ASSERT_TRUE(worker->Send(record).ok());
  size_t records = 0;
  std::vector<uint64_t> ids;
  while (ids.size() < 20) {
    const auto answer = worker->Receive();
    ASSERT_TRUE(answer.ok()) << answer.status();
    ++records;
    for (const channel::Completion& done :
         std::get<channel::CompletionRecord>(*answer).completions) {
      ASSERT_TRUE(done.status.ok()) << done.status;
      ids.push_back(done.id);
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], record.runs[i].id);
  GTEST_LOG_(INFO) << "20 runs answered in " << records << " records";
}

TEST_F(ModelsTest, ABrokenModelFailsToLoadWithAReason) {
  const auto missing = Fork();
  ASSERT_NE(missing, nullptr);
  const absl::Status status = missing->Load(LoadOf("half/no_such_version"));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(base::Message(status)), HasSubstr("no_such_version"));
  const auto ended = missing->Wait();
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->exited);
  EXPECT_EQ(ended->code, 1);

  const auto garbled = Fork();
  ASSERT_NE(garbled, nullptr);
  channel::LoadRecord config = LoadOf("half/1");
  config.session_config = "no proto";
  EXPECT_TRUE(absl::IsInvalidArgument(garbled->Load(config)));

  const auto untagged = Fork();
  ASSERT_NE(untagged, nullptr);
  channel::LoadRecord tags = LoadOf("half/1");
  tags.tags = {"train", "gpu"};
  EXPECT_FALSE(untagged->Load(tags).ok());

  const auto library = Fork();
  ASSERT_NE(library, nullptr);
  channel::LoadRecord ops = LoadOf("half/1");
  ops.op_libraries = {PathOf("no_such_library.so")};
  const absl::Status no_library = library->Load(ops);
  EXPECT_THAT(std::string(base::Message(no_library)), HasSubstr("no_such_library.so"));
}

TEST_F(ModelsTest, TheOriginalsFixturesLoadAndAnswer) {
  const std::string& fixtures = ThePlaces().fixtures;
  if (!std::ifstream(fixtures + "/LICENSE")) GTEST_SKIP() << "no fixtures in " << fixtures;
  const tensor::Tensor x = Floats({1, 2, 5});
  for (const char* path :
       {"saved_model_half_plus_two_cpu/00000123", "saved_model_half_plus_two_tf2_cpu/00000123",
        "saved_model_half_plus_two_2_versions/00000123"}) {
    const auto worker = Load(TestWorker::LoadOf(fixtures + "/" + path));
    ASSERT_NE(worker, nullptr) << path;
    EXPECT_EQ(worker->info().stateful_reason, "") << path;
    EXPECT_THAT(Values<float>(Outputs(worker.get(), "serving_default", {&x})[0]),
                ElementsAre(2.5f, 3.0f, 4.5f))
        << path;
  }
  const auto counter = Load(TestWorker::LoadOf(fixtures + "/saved_model_counter/00000123"));
  ASSERT_NE(counter, nullptr);
  EXPECT_THAT(counter->info().stateful_reason, HasSubstr("Assign"));
  EXPECT_THAT(Values<float>(Outputs(counter.get(), "incr_counter", {})[0]), ElementsAre(1));
  const auto bad = Fork();
  ASSERT_NE(bad, nullptr);
  EXPECT_FALSE(bad->Load(TestWorker::LoadOf(fixtures + "/bad_half_plus_two/00000123")).ok());
}

}  // namespace
}  // namespace tensord::testing
