// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/record.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/limits.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::channel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint64_t kIncarnation = 0x1122334455667788;
constexpr size_t kHeaderBytes = 24;

TensorDescriptor Floats(uint64_t offset, int64_t rows) {
  return {.dtype = tensor::DType::kFloat,
          .shape = {rows, 3},
          .offset = offset,
          .bytes = static_cast<uint64_t>(rows) * 12};
}

LoadRecord SomeLoad() {
  return {.model = "half",
          .version = 7,
          .directory = "/models/half/7",
          .tags = {"serve", "gpu"},
          .session_config = std::string("\x08\x00\x01", 3),
          .op_libraries = {"/ops/a.so"},
          .executors = 2,
          .runs_in_caller = false,
          .narrow_session_config = std::string("\x10\x01", 2),
          .narrow_bytes_max = uint64_t{1} << 30,
          .synthetic_warm_up = false,
          .read_batching_parameters = true,
          .warm_up_rows = {1, 8},
          .sandbox_user = 65534,
          .sandbox = false,
          .sandbox_enforced = true,
          .accept_weak_files = true};
}

RunRecord SomeRuns() {
  RunRecord record;
  record.runs.push_back({.id = 1,
                         .signature = 2,
                         .more_signatures = {5, 0},
                         .response_offset = 128,
                         .response_bytes = 4096,
                         .inputs = {Floats(0, 2), Floats(64, 1)}});
  record.runs.push_back({.id = 9, .response_bytes = 64});
  record.runs[1].inputs.push_back({.dtype = tensor::DType::kString, .offset = 192, .bytes = 21});
  return record;
}

CompletionRecord SomeCompletions() {
  CompletionRecord record;
  record.completions.push_back({.id = 1, .run_nanoseconds = 12345, .outputs = {Floats(128, 2)}});
  record.completions.push_back({.id = 2, .status = absl::InternalError("matmul: bad shapes")});
  record.completions.push_back(
      {.id = 3, .inputs_retained = true, .held = true, .held_bytes = 1 << 20});
  return record;
}

std::vector<ToWorker> AllToWorker() {
  RunRecord own;
  own.runs.push_back({.id = 4, .own_request_segment = true, .own_response_segment = true});
  return {SomeLoad(),   SomeRuns(),       own,         CollectRecord{.id = 3, .response_bytes = 77},
          StopRecord{}, SegmentsRecord{}, SealRecord{}};
}

std::vector<ToFront> AllToFront() {
  return {HelloRecord{.pid = 42},
          LoadedRecord{.info_bytes = 1000},
          LoadFailedRecord{.status = absl::NotFoundError("no such tag")},
          SomeCompletions(),
          HeartbeatRecord{.runs_done = 5},
          DyingRecord{.signal = 31, .system_call = 41},
          SegmentsTakenRecord{},
          SealedRecord{.status = absl::OkStatus(), .report = "stage 2: all of it"},
          SealedRecord{.status = absl::FailedPreconditionError("no filter"), .report = ""}};
}

std::string_view Error(const absl::Status& status) { return base::Message(status); }

TEST(Record, LoadComesBackAsItWas) {
  const auto back = DecodeToWorker(Encode(kIncarnation, ToWorker(SomeLoad())), kIncarnation);
  ASSERT_TRUE(back.ok()) << back.status();
  const auto& load = std::get<LoadRecord>(*back);
  const LoadRecord expected = SomeLoad();
  EXPECT_EQ(load.model, expected.model);
  EXPECT_EQ(load.version, expected.version);
  EXPECT_EQ(load.directory, expected.directory);
  EXPECT_EQ(load.tags, expected.tags);
  EXPECT_EQ(load.session_config, expected.session_config);
  EXPECT_EQ(load.op_libraries, expected.op_libraries);
  EXPECT_EQ(load.executors, expected.executors);
  EXPECT_EQ(load.runs_in_caller, expected.runs_in_caller);
  EXPECT_EQ(load.synthetic_warm_up, expected.synthetic_warm_up);
  EXPECT_EQ(load.read_batching_parameters, expected.read_batching_parameters);
  EXPECT_EQ(load.narrow_session_config, expected.narrow_session_config);
  EXPECT_EQ(load.narrow_bytes_max, expected.narrow_bytes_max);
  EXPECT_EQ(load.warm_up_rows, expected.warm_up_rows);
  EXPECT_EQ(load.sandbox_user, expected.sandbox_user);
  EXPECT_EQ(load.sandbox, expected.sandbox);
  EXPECT_EQ(load.sandbox_enforced, expected.sandbox_enforced);
  EXPECT_EQ(load.accept_weak_files, expected.accept_weak_files);
}

TEST(Record, WhatASealedWorkerDiesOfComesBack) {
  const auto dying = DecodeToFront(
      Encode(kIncarnation, ToFront(DyingRecord{.signal = 31, .system_call = 41})), kIncarnation);
  ASSERT_TRUE(dying.ok()) << dying.status();
  EXPECT_EQ(std::get<DyingRecord>(*dying).system_call, 41);
  const auto sealed = DecodeToFront(
      Encode(kIncarnation, ToFront(SealedRecord{.status = absl::OkStatus(), .report = "done"})),
      kIncarnation);
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  EXPECT_TRUE(std::get<SealedRecord>(*sealed).status.ok());
  EXPECT_EQ(std::get<SealedRecord>(*sealed).report, "done");
}

TEST(Record, RunsComeBackAsTheyWere) {
  const auto back = DecodeToWorker(Encode(kIncarnation, ToWorker(SomeRuns())), kIncarnation);
  ASSERT_TRUE(back.ok()) << back.status();
  const auto& runs = std::get<RunRecord>(*back).runs;
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].id, 1u);
  EXPECT_EQ(runs[0].signature, 2u);
  EXPECT_FALSE(runs[0].own_request_segment);
  EXPECT_EQ(runs[0].response_offset, 128u);
  EXPECT_EQ(runs[0].response_bytes, 4096u);
  ASSERT_THAT(runs[0].inputs, SizeIs(2));
  EXPECT_EQ(runs[0].inputs[1].offset, 64u);
  EXPECT_EQ(runs[0].inputs[0].shape, (tensor::Shape{2, 3}));
  EXPECT_EQ(runs[1].inputs[0].dtype, tensor::DType::kString);
  EXPECT_EQ(runs[1].inputs[0].bytes, 21u);
}

TEST(Record, OwnSegmentsAreTold) {
  RunRecord record;
  record.runs.push_back({.id = 4, .own_response_segment = true});
  const auto back = DecodeToWorker(Encode(kIncarnation, ToWorker(record)), kIncarnation);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(std::get<RunRecord>(*back).runs[0].own_request_segment);
  EXPECT_TRUE(std::get<RunRecord>(*back).runs[0].own_response_segment);
}

TEST(Record, CompletionsComeBackAsTheyWere) {
  const auto back = DecodeToFront(Encode(kIncarnation, ToFront(SomeCompletions())), kIncarnation);
  ASSERT_TRUE(back.ok()) << back.status();
  const auto& completions = std::get<CompletionRecord>(*back).completions;
  ASSERT_THAT(completions, SizeIs(3));
  EXPECT_EQ(completions[0].run_nanoseconds, 12345u);
  EXPECT_THAT(completions[0].outputs, SizeIs(1));
  EXPECT_EQ(completions[1].status, absl::InternalError("matmul: bad shapes"));
  EXPECT_TRUE(completions[2].held && completions[2].inputs_retained);
  EXPECT_EQ(completions[2].held_bytes, 1u << 20);
}

TEST(Record, SmallRecordsComeBackAsTheyWere) {
  const auto collect = DecodeToWorker(Encode(1, ToWorker(AllToWorker()[3])), 1);
  ASSERT_TRUE(collect.ok());
  EXPECT_EQ(std::get<CollectRecord>(*collect).response_bytes, 77u);
  EXPECT_TRUE(DecodeToWorker(Encode(1, ToWorker(StopRecord{})), 1).ok());
  const std::vector<ToFront> sent = AllToFront();
  EXPECT_EQ(std::get<HelloRecord>(*DecodeToFront(Encode(1, sent[0]), 1)).pid, 42);
  EXPECT_EQ(std::get<LoadedRecord>(*DecodeToFront(Encode(1, sent[1]), 1)).info_bytes, 1000u);
  EXPECT_EQ(std::get<LoadFailedRecord>(*DecodeToFront(Encode(1, sent[2]), 1)).status,
            absl::NotFoundError("no such tag"));
  EXPECT_EQ(std::get<HeartbeatRecord>(*DecodeToFront(Encode(1, sent[4]), 1)).runs_done, 5u);
  EXPECT_EQ(std::get<DyingRecord>(*DecodeToFront(Encode(1, sent[5]), 1)).signal, 31);
}

TEST(Record, SizesAreCountedExactly) {
  size_t bytes = kHeaderBytes;
  for (const auto& run : SomeRuns().runs) bytes += RunBytes(run);
  EXPECT_EQ(Encode(1, ToWorker(SomeRuns())).size(), bytes);
  bytes = kHeaderBytes;
  for (const Completion& completion : SomeCompletions().completions) {
    bytes += CompletionBytes(completion);
  }
  EXPECT_EQ(Encode(1, ToFront(SomeCompletions())).size(), bytes);
}

TEST(Record, ErrorTextsAreCappedBetweenCharacters) {
  const std::string text = std::string(limits::kErrorTextBytesMax - 1, 'x') + "\xc3\xa9 and more";
  CompletionRecord record;
  record.completions.push_back({.id = 1, .status = absl::InternalError(text)});
  const std::string bytes = Encode(1, ToFront(record));
  EXPECT_EQ(bytes.size(), kHeaderBytes + CompletionBytes(record.completions[0]));
  const auto back = DecodeToFront(bytes, 1);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Error(std::get<CompletionRecord>(*back).completions[0].status),
            text.substr(0, limits::kErrorTextBytesMax - 1));
}

TEST(Record, EveryCutIsRefused) {
  for (const ToWorker& record : AllToWorker()) {
    const std::string bytes = Encode(kIncarnation, record);
    for (size_t end = 0; end < bytes.size(); ++end) {
      EXPECT_FALSE(DecodeToWorker(bytes.substr(0, end), kIncarnation).ok()) << end;
    }
    EXPECT_FALSE(DecodeToWorker(bytes + '\0', kIncarnation).ok());
  }
  for (const ToFront& record : AllToFront()) {
    const std::string bytes = Encode(kIncarnation, record);
    for (size_t end = 0; end < bytes.size(); ++end) {
      EXPECT_FALSE(DecodeToFront(bytes.substr(0, end), kIncarnation).ok()) << end;
    }
    EXPECT_FALSE(DecodeToFront(bytes + '\0', kIncarnation).ok());
  }
}

// What decodes must encode to the very same bytes: then there is one way to say a thing, and no
// byte is without meaning.
TEST(Record, EveryMutatedByteIsRefusedOrMeansWhatItSays) {
  std::mt19937 random(7);
  for (const ToWorker& record : AllToWorker()) {
    const std::string bytes = Encode(kIncarnation, record);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int change = 0; change < 16; ++change) {
        std::string mutated = bytes;
        mutated[i] = static_cast<char>(change < 8 ? mutated[i] ^ (1 << change) : random());
        const auto back = DecodeToWorker(mutated, kIncarnation);
        if (back.ok()) {
          EXPECT_EQ(Encode(kIncarnation, *back), mutated);
        }
      }
    }
  }
  for (const ToFront& record : AllToFront()) {
    const std::string bytes = Encode(kIncarnation, record);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int change = 0; change < 16; ++change) {
        std::string mutated = bytes;
        mutated[i] = static_cast<char>(change < 8 ? mutated[i] ^ (1 << change) : random());
        const auto back = DecodeToFront(mutated, kIncarnation);
        if (back.ok()) {
          EXPECT_EQ(Encode(kIncarnation, *back), mutated);
        }
      }
    }
  }
}

TEST(Record, AnotherIncarnationIsRefused) {
  const auto back = DecodeToFront(Encode(1, ToFront(HelloRecord{.pid = 1})), 2);
  EXPECT_THAT(Error(back.status()), HasSubstr("another incarnation"));
}

TEST(Record, TheOtherDirectionsRecordsAreRefused) {
  EXPECT_FALSE(DecodeToFront(Encode(1, ToWorker(StopRecord{})), 1).ok());
  EXPECT_FALSE(DecodeToWorker(Encode(1, ToFront(HelloRecord{})), 1).ok());
}

TEST(Record, AHugeCountIsRefusedBeforeMemoryIsTaken) {
  std::string bytes = Encode(1, ToFront(SomeCompletions()));
  const uint32_t huge = 0xffffffff;
  std::memcpy(bytes.data() + 16, &huge, sizeof(huge));  // The header's count.
  EXPECT_FALSE(DecodeToFront(bytes, 1).ok());
  bytes = Encode(1, ToFront(SomeCompletions()));
  std::memcpy(bytes.data() + kHeaderBytes + 28, &huge, sizeof(huge));  // The outputs' count.
  EXPECT_FALSE(DecodeToFront(bytes, 1).ok());
}

struct BadTensor {
  const char* name;
  TensorDescriptor tensor;
  const char* why;
};

TEST(Record, TensorsThatDoNotAddUpAreRefused) {
  const tensor::Shape six = {2, 3};
  const BadTensor cases[] = {
      {"resource", {.dtype = tensor::DType::kResource, .shape = six, .bytes = 24}, "dtype"},
      {"invalid", {.dtype = tensor::DType::kInvalid, .shape = six, .bytes = 24}, "dtype"},
      {"quantized", {.dtype = tensor::DType::kQint8, .shape = six, .bytes = 6}, "dtype"},
      {"unknown", {.dtype = static_cast<tensor::DType>(99), .shape = six, .bytes = 24}, "dtype"},
      {"negative", {.dtype = static_cast<tensor::DType>(-1), .shape = six, .bytes = 24}, "dtype"},
      {"short", {.dtype = tensor::DType::kFloat, .shape = six, .bytes = 23}, "disagree"},
      {"long", {.dtype = tensor::DType::kFloat, .shape = six, .bytes = 25}, "disagree"},
      {"crooked", {.dtype = tensor::DType::kFloat, .shape = six, .offset = 63, .bytes = 24}, "64"},
      {"wraps",
       {.dtype = tensor::DType::kFloat, .shape = six, .offset = ~0ull - 63, .bytes = 128},
       "wraps"},
      {"no table", {.dtype = tensor::DType::kString, .shape = six, .bytes = 55}, "offsets"},
      {"huge string",
       {.dtype = tensor::DType::kString, .shape = six, .bytes = limits::kTensorBytesMax + 1},
       "large"},
  };
  for (const BadTensor& c : cases) {
    CompletionRecord record;
    record.completions.push_back({.id = 1, .outputs = {c.tensor}});
    const auto back = DecodeToFront(Encode(1, ToFront(record)), 1);
    EXPECT_FALSE(back.ok()) << c.name;
    EXPECT_THAT(Error(back.status()), HasSubstr(c.why)) << c.name;
  }
}

TEST(Record, AnOutputMayStayInTheWorkerAndAnInputIsAlwaysThere) {
  CompletionRecord answers;
  answers.completions.push_back({.id = 1, .outputs = {Floats(0, 1), {.offset = 64}}});
  const auto back = DecodeToFront(Encode(1, ToFront(answers)), 1);
  ASSERT_TRUE(back.ok()) << back.status();
  const Completion& completion = std::get<CompletionRecord>(*back).completions.at(0);
  ASSERT_EQ(completion.outputs.size(), 2u);
  EXPECT_EQ(completion.outputs[1].dtype, tensor::DType::kInvalid);
  EXPECT_EQ(completion.outputs[1].bytes, 0u);
  RunRecord runs;
  runs.runs.push_back({.id = 1, .inputs = {{.offset = 64}}});
  EXPECT_THAT(Error(DecodeToWorker(Encode(1, ToWorker(runs)), 1).status()), HasSubstr("dtype"));
}

// Dims as no Shape of ours can hold them, written into the bytes.
TEST(Record, HostileDimsAreRefused) {
  CompletionRecord record;
  record.completions.push_back({.id = 1, .outputs = {Floats(0, 2)}});
  const std::string bytes = Encode(1, ToFront(record));
  const size_t dims_at = kHeaderBytes + 32 + 24;
  for (const int64_t dim : {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 40}) {
    std::string mutated = bytes;
    std::memcpy(mutated.data() + dims_at, &dim, sizeof(dim));
    EXPECT_FALSE(DecodeToFront(mutated, 1).ok()) << dim;
  }
  std::string mutated = bytes;
  const uint32_t rank = 9;
  std::memcpy(mutated.data() + kHeaderBytes + 32 + 4, &rank, sizeof(rank));
  EXPECT_THAT(Error(DecodeToFront(mutated, 1).status()), HasSubstr("rank"));
}

TEST(Record, AnswersThatContradictThemselvesAreRefused) {
  const Completion cases[] = {
      {.id = 1, .status = absl::InternalError("x"), .outputs = {Floats(0, 1)}},
      {.id = 1, .held = true, .held_bytes = 10, .outputs = {Floats(0, 1)}},
      {.id = 1, .status = absl::InternalError("x"), .held = true, .held_bytes = 10},
      {.id = 1, .held = true, .held_bytes = 0},
      {.id = 1, .held = false, .held_bytes = 10},
  };
  for (const Completion& completion : cases) {
    CompletionRecord record;
    record.completions.push_back(completion);
    EXPECT_FALSE(DecodeToFront(Encode(1, ToFront(record)), 1).ok());
  }
  EXPECT_FALSE(DecodeToFront(Encode(1, ToFront(CompletionRecord{})), 1).ok());
  EXPECT_FALSE(DecodeToFront(Encode(1, ToFront(LoadFailedRecord{})), 1).ok());
}

TEST(Record, OneRunWithItsOwnSegmentsTravelsAlone) {
  RunRecord record;
  record.runs.push_back({.id = 1, .own_request_segment = true});
  record.runs.push_back({.id = 2});
  EXPECT_FALSE(DecodeToWorker(Encode(1, ToWorker(record)), 1).ok());
}

TEST(Record, ALoadOutsideItsLimitsIsRefused) {
  LoadRecord load = SomeLoad();
  load.executors = 0;
  EXPECT_FALSE(DecodeToWorker(Encode(1, ToWorker(load)), 1).ok());
  load = SomeLoad();
  load.executors = limits::kExecutorsMax + 1;
  EXPECT_FALSE(DecodeToWorker(Encode(1, ToWorker(load)), 1).ok());
  load = SomeLoad();
  load.tags.assign(limits::kLoadListMax + 1, "t");
  EXPECT_FALSE(DecodeToWorker(Encode(1, ToWorker(load)), 1).ok());
  load = SomeLoad();
  load.warm_up_rows = {-1};
  EXPECT_FALSE(DecodeToWorker(Encode(1, ToWorker(load)), 1).ok());
  load = SomeLoad();
  load.directory.assign(limits::kRecordBytesMax, 'd');
  EXPECT_FALSE(DecodeToWorker(Encode(1, ToWorker(load)), 1).ok());
}

}  // namespace
}  // namespace tensord::channel
