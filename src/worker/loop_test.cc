// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "engine/testing/fake_engine.h"

namespace tensord::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kIncarnation = 42;

// Counts itself; gives up nothing.
class FakeConfinement : public Confinement {
 public:
  Confined BeforeLoad(const channel::LoadRecord& record) override {
    absl::Status status;
    if (record.sandbox_enforced) status = absl::FailedPreconditionError("too weak");
    return {.lines = {"before"}, .grade = "B", .confined = true, .status = status};
  }
  std::vector<std::string> AfterLoad() override { return {"after"}; }
  channel::SealedRecord Seal() override { return {.status = absl::OkStatus(), .report = "sealed"}; }
};

tensor::Signature Vector(const char* name) {
  tensor::Signature signature;
  signature.name = name;
  tensor::Endpoint& x = signature.inputs.emplace_back();
  x.name = "x";
  x.dtype = tensor::DType::kFloat;
  x.shape = {.unknown_rank = false, .dims = {-1}};
  signature.outputs.emplace_back().name = "y";
  return signature;
}

tensor::Tensor CopyOf(const tensor::TensorView& view) {
  tensor::Tensor tensor{
      .dtype = view.dtype, .shape = view.shape, .buffer = tensor::Buffer(view.bytes.size())};
  std::ranges::copy(view.bytes, tensor.buffer.bytes().begin());
  return tensor;
}

// A model that answers its input.
engine::FakeModelSpec EchoModel() {
  engine::FakeModelSpec spec;
  spec.signatures.push_back(Vector("one"));
  spec.signatures.push_back(Vector("two"));
  spec.run = [](int, std::span<const tensor::TensorView> inputs) {
    std::vector<tensor::Tensor> outputs;
    outputs.push_back(CopyOf(inputs[0]));
    return outputs;
  };
  return spec;
}

// The front's side, and the loop on a thread.
class LoopTest : public ::testing::Test {
 protected:
  void Start(absl::StatusOr<engine::FakeModelSpec> model) {
    auto ends = channel::PacketSocket::Pair();
    ASSERT_TRUE(ends.ok());
    front_.emplace(std::move(ends->first));
    auto request = channel::RequestSegment::Create(1 << 16);
    auto response = channel::ResponseSegment::Create(1 << 16);
    ASSERT_TRUE(request.ok() && response.ok());
    using Access = channel::MappedSegment::Access;
    engine_.emplace(std::move(model));
    loop_.emplace(
        Loop::Ends{.channel = std::move(ends->second),
                   .request = *channel::MappedSegment::Map(request->fd(), Access::kRead),
                   .response = *channel::MappedSegment::Map(response->fd(), Access::kReadWrite),
                   .incarnation = kIncarnation},
        &*engine_, &confinement_);
    request_.emplace(*std::move(request));
    response_.emplace(*std::move(response));
    thread_ = std::thread([this] { exit_ = loop_->Serve(); });
    ASSERT_EQ(std::get<channel::HelloRecord>(Receive()).pid, getpid());
  }
  void TearDown() override {
    front_.reset();
    if (thread_.joinable()) thread_.join();
    loop_.reset();
  }
  ExitCode Join() {
    thread_.join();
    return exit_;
  }

  void Send(const channel::ToWorker& record, const std::vector<int>& descriptors = {}) {
    ASSERT_TRUE(front_->Send(channel::Encode(kIncarnation, record), descriptors).ok());
  }
  // The next record that is no heartbeat; a DyingRecord stands for the end of the channel.
  channel::ToFront Receive() {
    while (true) {
      const auto packet = front_->Receive(limits::kRecordBytesMax, 0);
      if (!packet.ok()) return channel::DyingRecord{};
      auto record = channel::DecodeToFront(packet->bytes, kIncarnation);
      EXPECT_TRUE(record.ok()) << record.status();
      if (!record.ok()) return channel::DyingRecord{};
      if (!std::holds_alternative<channel::HeartbeatRecord>(*record)) return *std::move(record);
      ++heartbeats_;
    }
  }
  std::vector<channel::Completion> Completions() {
    const channel::ToFront record = Receive();
    if (const auto* done = std::get_if<channel::CompletionRecord>(&record)) {
      return done->completions;
    }
    ADD_FAILURE() << "no completion";
    return {};
  }
  channel::Completion One() {
    std::vector<channel::Completion> completions = Completions();
    EXPECT_THAT(completions, SizeIs(1));
    return completions.empty() ? channel::Completion() : completions[0];
  }

  engine::ModelInfo Load(channel::LoadRecord record = {}) {
    record.executors = 2;
    Send(record);
    const channel::ToFront answer = Receive();
    const auto* loaded = std::get_if<channel::LoadedRecord>(&answer);
    if (loaded == nullptr) {
      ADD_FAILURE() << "not loaded";
      return {};
    }
    std::string bytes(loaded->info_bytes, '\0');
    EXPECT_TRUE(channel::CopyFromShared(
                    std::as_writable_bytes(std::span(bytes.data(), bytes.size())), *response_, 0)
                    .ok());
    return engine::ParseModelInfo(bytes).value();
  }
  // A run of a vector of `count` times `value`, in and out at `offset`.
  channel::Run MakeRun(uint64_t id, float value, int64_t count = 4, uint64_t offset = 0) {
    const uint64_t bytes = static_cast<uint64_t>(count) * 4;
    for (uint64_t i = 0; i < bytes; i += 4) {
      std::memcpy(request_->Bytes(offset + i, 4).data(), &value, 4);
    }
    channel::Run run;
    run.id = id;
    run.response_offset = offset;
    run.response_bytes = 1024;
    run.inputs = {
        {.dtype = tensor::DType::kFloat, .shape = {count}, .offset = offset, .bytes = bytes}};
    return run;
  }
  std::vector<float> Output(const channel::Completion& completion,
                            const channel::ResponseSegment& segment) {
    if (completion.outputs.size() != 1) return {};
    std::vector<float> values(completion.outputs[0].bytes / 4);
    EXPECT_TRUE(channel::CopyFromShared(std::as_writable_bytes(std::span(values)), segment,
                                        completion.outputs[0].offset)
                    .ok());
    return values;
  }

  // Of runs that wait; a run may still be on its way when a test's body ends.
  std::atomic<bool> entered_ = false;
  std::atomic<bool> may_end_ = false;
  FakeConfinement confinement_;
  std::optional<engine::FakeEngine> engine_;
  std::optional<channel::PacketSocket> front_;
  std::optional<channel::RequestSegment> request_;
  std::optional<channel::ResponseSegment> response_;
  std::optional<Loop> loop_;
  std::thread thread_;
  ExitCode exit_ = ExitCode::kDone;  // Valid once the thread has been joined.
  int heartbeats_ = 0;
};

TEST_F(LoopTest, LoadsWarmsDescribesAndAnswers) {
  Start(EchoModel());
  channel::LoadRecord record;
  record.warm_up_rows = {1, 8};
  const engine::ModelInfo info = Load(record);
  EXPECT_EQ(info.runtime_version, "fake");
  EXPECT_EQ(info.warm_up_runs, 4u);  // Two signatures, two sizes.
  EXPECT_THAT(info.sandbox, ElementsAre("before", "after"));
  EXPECT_EQ(info.sandbox_grade, "B");
  EXPECT_EQ(info.sandbox_stage, 1u);
  EXPECT_GT(info.private_bytes, 0u);
  Send(channel::RunRecord{{MakeRun(7, 1.5f)}});
  const channel::Completion done = One();
  EXPECT_EQ(done.id, 7u);
  EXPECT_TRUE(done.status.ok());
  EXPECT_THAT(Output(done, *response_), ElementsAre(1.5f, 1.5f, 1.5f, 1.5f));
  Send(channel::StopRecord{});
  EXPECT_EQ(Join(), ExitCode::kDone);
}

TEST_F(LoopTest, AFailedLoadIsSaidAndEndsTheProcess) {
  Start(absl::NotFoundError("no such model"));
  Send(channel::LoadRecord{});
  const channel::ToFront answer = Receive();
  ASSERT_TRUE(std::holds_alternative<channel::LoadFailedRecord>(answer));
  EXPECT_EQ(std::get<channel::LoadFailedRecord>(answer).status,
            absl::NotFoundError("no such model"));
  EXPECT_EQ(Join(), ExitCode::kLoadFailed);
}

TEST_F(LoopTest, AStatefulModelIsNotWarmed) {
  engine::FakeModelSpec spec = EchoModel();
  std::atomic<int> runs = 0;
  spec.stateful_reason = "it counts";
  spec.run = [&](int, std::span<const tensor::TensorView>) {
    ++runs;
    return std::vector<tensor::Tensor>();
  };
  Start(std::move(spec));
  channel::LoadRecord record;
  record.warm_up_rows = {1};
  const engine::ModelInfo info = Load(record);
  EXPECT_EQ(info.stateful_reason, "it counts");
  EXPECT_EQ(info.warm_up_runs, 0u);
  EXPECT_EQ(runs, 0);
}

TEST_F(LoopTest, AFailingWarmUpIsAWarningOnly) {
  engine::FakeModelSpec spec = EchoModel();
  spec.run = [](int, std::span<const tensor::TensorView>) {
    return absl::InvalidArgumentError("zeros are no input");
  };
  Start(std::move(spec));
  channel::LoadRecord record;
  record.warm_up_rows = {1};
  EXPECT_THAT(
      Load(record).warnings,
      ElementsAre(HasSubstr("'one' with 1 rows of zeros: zeros are no input"), HasSubstr("'two'")));
}

TEST_F(LoopTest, ADescriptionThatDoesNotFitFailsTheLoad) {
  engine::FakeModelSpec spec = EchoModel();
  spec.run = [](int, std::span<const tensor::TensorView>) {
    return absl::InvalidArgumentError(std::string(50'000, 'x'));
  };
  Start(std::move(spec));
  channel::LoadRecord record;
  record.warm_up_rows = {1};
  Send(record);
  const channel::ToFront answer = Receive();
  ASSERT_TRUE(std::holds_alternative<channel::LoadFailedRecord>(answer));
  EXPECT_TRUE(absl::IsResourceExhausted(std::get<channel::LoadFailedRecord>(answer).status));
}

TEST_F(LoopTest, QuickRunsOfOneRecordAreAllAnsweredInOrder) {
  Start(EchoModel());
  Load();
  channel::RunRecord record;
  for (uint64_t i = 0; i < limits::kRunsPerRecordMax; ++i) {
    record.runs.push_back(MakeRun(100 + i, static_cast<float>(i), 4, i * 1024));
  }
  Send(record);
  uint64_t next = 100;
  while (next < 100 + limits::kRunsPerRecordMax) {
    const std::vector<channel::Completion> completions = Completions();
    ASSERT_FALSE(completions.empty());
    for (const channel::Completion& done : completions) {
      EXPECT_EQ(done.id, next);
      EXPECT_EQ(Output(done, *response_), std::vector<float>(4, static_cast<float>(next - 100)));
      ++next;
    }
  }
}

TEST_F(LoopTest, OutputsThatDoNotFitWaitAndCanBeForgotten) {
  Start(EchoModel());
  Load();
  channel::Run run = MakeRun(1, 3, 1000);
  run.response_bytes = 64;
  Send(channel::RunRecord{{run}});
  const channel::Completion held = One();
  EXPECT_TRUE(held.held);
  EXPECT_EQ(held.held_bytes, 4000u);
  EXPECT_THAT(held.outputs, IsEmpty());
  const auto segment = channel::ResponseSegment::Create(4096);
  ASSERT_TRUE(segment.ok());
  Send(channel::CollectRecord{.id = 1, .response_bytes = 4096}, {segment->fd()});
  EXPECT_EQ(Output(One(), *segment), std::vector<float>(1000, 3));
  // Collected outputs are gone.
  Send(channel::CollectRecord{.id = 1, .response_bytes = 4096}, {segment->fd()});
  EXPECT_FALSE(One().status.ok());

  run.id = 2;
  Send(channel::RunRecord{{run}});
  EXPECT_TRUE(One().held);
  Send(channel::CollectRecord{.id = 2, .response_bytes = 0});  // No answer comes to this.
  Send(channel::RunRecord{{MakeRun(3, 1)}});
  EXPECT_EQ(One().id, 3u);
}

TEST_F(LoopTest, HeldOutputsThatAreInputsAreCopiedAway) {
  engine::FakeModelSpec spec = EchoModel();
  spec.passes_inputs_through = true;
  Start(std::move(spec));
  Load();
  channel::Run run = MakeRun(1, 3, 100);
  run.response_bytes = 0;
  Send(channel::RunRecord{{run}});
  const channel::Completion held = One();
  EXPECT_TRUE(held.held);
  EXPECT_FALSE(held.inputs_retained);
  const auto segment = channel::ResponseSegment::Create(4096);
  ASSERT_TRUE(segment.ok());
  Send(channel::CollectRecord{.id = 1, .response_bytes = 4096}, {segment->fd()});
  EXPECT_EQ(Output(One(), *segment), std::vector<float>(100, 3));
}

TEST_F(LoopTest, KeptInputsAreTold) {
  engine::FakeModelSpec spec = EchoModel();
  spec.keeps_inputs = true;
  Start(std::move(spec));
  Load();
  Send(channel::RunRecord{{MakeRun(1, 3)}});
  EXPECT_TRUE(One().inputs_retained);
  // Also out of a segment of the run's own, which then stays mapped.
  const auto own = channel::RequestSegment::Create(4096);
  ASSERT_TRUE(own.ok());
  channel::Run run = MakeRun(2, 3);
  run.own_request_segment = true;
  Send(channel::RunRecord{{run}}, {own->fd()});
  EXPECT_TRUE(One().inputs_retained);
}

TEST_F(LoopTest, OtherSegmentsAreTakenBetweenRuns) {
  engine::FakeModelSpec spec = EchoModel();
  spec.keeps_inputs = true;  // So the segments before must stay mapped.
  Start(std::move(spec));
  Load();
  Send(channel::RunRecord{{MakeRun(1, 3)}});
  EXPECT_TRUE(One().inputs_retained);
  auto request = channel::RequestSegment::Create(1 << 18);
  auto response = channel::ResponseSegment::Create(1 << 18);
  ASSERT_TRUE(request.ok() && response.ok());
  Send(channel::SegmentsRecord{}, {request->fd(), response->fd()});
  EXPECT_TRUE(std::holds_alternative<channel::SegmentsTakenRecord>(Receive()));
  request_.emplace(*std::move(request));
  response_.emplace(*std::move(response));
  // Beyond the end of those before.
  Send(channel::RunRecord{{MakeRun(2, 5, 4, 1 << 17)}});
  EXPECT_THAT(Output(One(), *response_), ElementsAre(5, 5, 5, 5));
}

TEST_F(LoopTest, SealsWhenItIsToldAndAnswersOn) {
  Start(EchoModel());
  Load();
  Send(channel::SealRecord{});
  const channel::ToFront answer = Receive();
  ASSERT_TRUE(std::holds_alternative<channel::SealedRecord>(answer));
  EXPECT_EQ(std::get<channel::SealedRecord>(answer).report, "sealed");
  Send(channel::RunRecord{{MakeRun(7, 1.5f)}});
  EXPECT_TRUE(One().status.ok());
}

TEST_F(LoopTest, AWorkerThatIsHeldTooWeaklyReadsNoModel) {
  Start(absl::InternalError("was asked to load"));
  channel::LoadRecord record;
  record.sandbox_enforced = true;
  Send(record);
  const channel::ToFront answer = Receive();
  ASSERT_TRUE(std::holds_alternative<channel::LoadFailedRecord>(answer));
  EXPECT_THAT(std::string(base::Message(std::get<channel::LoadFailedRecord>(answer).status)),
              HasSubstr("too weak"));
}

TEST_F(LoopTest, SegmentsThatDidNotComeAlongEndTheLoop) {
  Start(EchoModel());
  Load();
  Send(channel::SegmentsRecord{});
  EXPECT_EQ(Join(), ExitCode::kProtocolBroken);
}

TEST_F(LoopTest, RunsThatAreNoneAreAnsweredWithReasons) {
  Start(EchoModel());
  Load();
  channel::Run run = MakeRun(1, 1);
  run.signature = 2;
  Send(channel::RunRecord{{run}});
  EXPECT_THAT(std::string(base::Message(One().status)), HasSubstr("no signature number 2"));
  run = MakeRun(2, 1);
  run.inputs.clear();
  Send(channel::RunRecord{{run}});
  EXPECT_THAT(std::string(base::Message(One().status)), HasSubstr("'one' has 1 inputs; 0 came"));
  run = MakeRun(3, 1);
  run.inputs[0].offset = 1 << 20;
  Send(channel::RunRecord{{run}});
  EXPECT_TRUE(absl::IsInvalidArgument(One().status));
  run = MakeRun(4, 1);
  run.response_offset = 1 << 20;
  Send(channel::RunRecord{{run}});
  EXPECT_TRUE(absl::IsInvalidArgument(One().status));
}

TEST_F(LoopTest, SignaturesThatTakeTheSameInputsRunAsOne) {
  Start(EchoModel());
  Load();
  channel::Run run = MakeRun(1, 3);
  run.more_signatures = {1, 0};
  Send(channel::RunRecord{{run}});
  const channel::Completion done = One();
  ASSERT_TRUE(done.status.ok()) << done.status;
  EXPECT_THAT(done.outputs, SizeIs(3));
}

TEST_F(LoopTest, SignaturesThatCannotRunTogetherAreAnsweredWithReasons) {
  engine::FakeModelSpec model = EchoModel();
  model.signatures[1].inputs[0].tensor_name = "elsewhere:0";
  Start(std::move(model));
  Load();
  channel::Run run = MakeRun(1, 3);
  run.more_signatures = {7};
  Send(channel::RunRecord{{run}});
  EXPECT_THAT(std::string(base::Message(One().status)), HasSubstr("no signature number 7"));
  run = MakeRun(2, 3);
  run.more_signatures = {1};
  Send(channel::RunRecord{{run}});
  EXPECT_THAT(std::string(base::Message(One().status)), HasSubstr("do not take the same inputs"));
}

TEST_F(LoopTest, StopFinishesWhatCameBefore) {
  Start(EchoModel());
  Load();
  for (uint64_t i = 0; i < 50; ++i) {
    Send(channel::RunRecord{{MakeRun(i, 1, 4, i * 1024)}});
  }
  Send(channel::StopRecord{});
  size_t answered = 0;
  while (true) {
    const channel::ToFront record = Receive();
    if (!std::holds_alternative<channel::CompletionRecord>(record)) break;
    answered += std::get<channel::CompletionRecord>(record).completions.size();
    if (answered == 50) break;
  }
  EXPECT_EQ(answered, 50u);
  EXPECT_EQ(Join(), ExitCode::kDone);
}

TEST_F(LoopTest, AFrontThatGoesEndsTheLoopEvenInTheMiddleOfARun) {
  engine::FakeModelSpec spec = EchoModel();
  spec.run = [this](int, std::span<const tensor::TensorView>) {
    entered_ = true;
    entered_.notify_all();
    may_end_.wait(false);
    return std::vector<tensor::Tensor>();
  };
  Start(std::move(spec));
  Load();
  Send(channel::RunRecord{{MakeRun(1, 1)}});
  entered_.wait(false);
  front_.reset();
  EXPECT_EQ(Join(), ExitCode::kDone);
  may_end_ = true;  // Only for the test's own end: a process would be gone.
  may_end_.notify_all();
}

TEST_F(LoopTest, AnythingElseThanALoadFirstEndsTheLoop) {
  Start(EchoModel());
  Send(channel::StopRecord{});
  EXPECT_EQ(Join(), ExitCode::kProtocolBroken);
}

TEST_F(LoopTest, GarbledRecordsAndSecondLoadsEndTheLoop) {
  Start(EchoModel());
  Load();
  ASSERT_TRUE(front_->Send("garbled").ok());
  EXPECT_EQ(Join(), ExitCode::kProtocolBroken);
}

TEST_F(LoopTest, ASecondLoadEndsTheLoop) {
  Start(EchoModel());
  Load();
  Send(channel::LoadRecord{});
  EXPECT_EQ(Join(), ExitCode::kProtocolBroken);
}

TEST_F(LoopTest, ARecordOfAnotherIncarnationEndsTheLoop) {
  Start(EchoModel());
  Load();
  ASSERT_TRUE(
      front_->Send(channel::Encode(kIncarnation + 1, channel::ToWorker(channel::StopRecord{})))
          .ok());
  EXPECT_EQ(Join(), ExitCode::kProtocolBroken);
}

TEST_F(LoopTest, HeartbeatsComeWhileARunIsOut) {
  engine::FakeModelSpec spec = EchoModel();
  spec.run = [this](int, std::span<const tensor::TensorView>) {
    may_end_.wait(false);
    return std::vector<tensor::Tensor>();
  };
  Start(std::move(spec));
  Load();
  Send(channel::RunRecord{{MakeRun(1, 1)}});
  // The first record that comes is a heartbeat, since the run ends only after it.
  const auto packet = front_->Receive(limits::kRecordBytesMax, 0);
  ASSERT_TRUE(packet.ok());
  const auto record = channel::DecodeToFront(packet->bytes, kIncarnation);
  ASSERT_TRUE(record.ok());
  EXPECT_TRUE(std::holds_alternative<channel::HeartbeatRecord>(*record));
  may_end_ = true;
  may_end_.notify_all();
  EXPECT_EQ(One().id, 1u);
}

}  // namespace
}  // namespace tensord::worker
