// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/worker_handle.h"

#include <signal.h>
#include <sys/syscall.h>

#include <numeric>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "fleet/testing/worker_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kSegvStatus = 11;      // As waitpid gives it: killed by SIGSEGV.
constexpr int kKillStatus = 9;       // SIGKILL.
constexpr int kExitOneStatus = 256;  // exit(1).

using WorkerHandleTest = WorkerFixture;

std::vector<float> Ramp(size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::string Text(const absl::Status& status) { return std::string(base::Message(status)); }

TEST_F(WorkerHandleTest, SaysWhatToLoadOnceTheWorkerSaidHello) {
  Start();
  Turn();
  EXPECT_FALSE(process_->Hear().has_value());
  process_->Say(channel::HelloRecord{.pid = 1});
  Turn();
  EXPECT_EQ(process_->HearA<channel::LoadRecord>().model, "half");
  EXPECT_EQ(handle_->Free(), 0);
}

TEST_F(WorkerHandleTest, TellsOfALoadedModel) {
  StartLoaded(2);
  EXPECT_EQ(info_.runtime_version, "2.21.0");
  EXPECT_EQ(handle_->Free(), 4);
}

TEST_F(WorkerHandleTest, GivesTheOutputsOfARun) {
  StartLoaded();
  Asked* asked = AskTwice({1, 2, 3});
  EXPECT_EQ(asked->outcomes, 0);
  Turn();
  const std::vector<channel::Run> runs = process_->HearRuns();
  ASSERT_THAT(runs, SizeIs(1));
  process_->SayAnswers({process_->Answer(runs[0])});
  Turn();
  EXPECT_THAT(FloatsOf(*asked), ElementsAre(2, 4, 6));
  EXPECT_EQ(asked->outcome.outputs[0].dtype, tensor::DType::kBool);
  EXPECT_EQ(asked->outcome.run_time, absl::Microseconds(1));
  EXPECT_EQ(handle_->slots_out(), 0u);
  EXPECT_EQ(handle_->CopiedBytes(), 64u + 128u);
}

TEST_F(WorkerHandleTest, SignaturesThatRunTogetherGiveAllTheirOutputs) {
  StartLoaded();
  const std::vector<float> values = {1, 2};
  const tensor::TensorView view{tensor::DType::kFloat, {2}, std::as_bytes(std::span(values))};
  RunOutcome got;
  handle_->Submit({.signature = FakeProcess::kTwice,
                   .more_signatures = {FakeProcess::kTwice},
                   .inputs = {{view}}},
                  [&](RunOutcome outcome) { got = std::move(outcome); });
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  EXPECT_THAT(run.more_signatures, ElementsAre(static_cast<uint32_t>(FakeProcess::kTwice)));
  channel::Completion both = process_->Answer(run);
  both.outputs.push_back(both.outputs[0]);
  both.outputs.push_back(both.outputs[1]);
  process_->SayAnswers({both});
  Turn();
  ASSERT_TRUE(got.status.ok()) << got.status;
  ASSERT_THAT(got.outputs, SizeIs(4));
  EXPECT_EQ(got.outputs[2].dtype, tensor::DType::kBool);
  EXPECT_EQ(got.outputs[3].shape, (tensor::Shape{2}));
}

TEST_F(WorkerHandleTest, AnOutputThatStaysInTheWorkerIsEmptyAndTheOthersCome) {
  StartLoaded();
  Asked* asked = AskTwice({1, 2, 3});
  Turn();
  channel::Completion completion = process_->Answer(process_->HearRuns().at(0));
  completion.outputs[0] = {};
  process_->SayAnswers({completion});
  Turn();
  ASSERT_TRUE(asked->outcome.status.ok()) << asked->outcome.status;
  ASSERT_THAT(asked->outcome.outputs, SizeIs(2));
  EXPECT_EQ(asked->outcome.outputs[0].dtype, tensor::DType::kInvalid);
  EXPECT_THAT(FloatsOf(*asked), ElementsAre(2, 4, 6));
}

TEST_F(WorkerHandleTest, AnAnswerWithoutTheOutputsOfEverySignatureEndsTheWorker) {
  StartLoaded();
  const std::vector<float> values = {1, 2};
  const tensor::TensorView view{tensor::DType::kFloat, {2}, std::as_bytes(std::span(values))};
  RunOutcome got;
  handle_->Submit({.signature = FakeProcess::kTwice,
                   .more_signatures = {FakeProcess::kTwice},
                   .inputs = {{view}}},
                  [&](RunOutcome outcome) { got = std::move(outcome); });
  Turn();
  process_->SayAnswers({process_->Answer(process_->HearRuns().at(0))});
  Turn();
  EXPECT_TRUE(got.worker_lost);
  EXPECT_GE(kills_, 1);
}

TEST_F(WorkerHandleTest, JoinsThePiecesOfABatchOfStrings) {
  StartLoaded();
  Asked* asked = AskStrings({{"a", ""}, {"long enough"}, {}, {"z"}});
  Turn();
  const std::vector<channel::Run> runs = process_->HearRuns();
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_EQ(runs[0].inputs[0].shape, (tensor::Shape{4}));
  process_->SayAnswers({process_->Answer(runs[0])});
  Turn();
  EXPECT_THAT(StringsOf(*asked), ElementsAre("a", "", "long enough", "z"));
}

TEST_F(WorkerHandleTest, AnEmptyBatchHasAPlaceToo) {
  StartLoaded();
  Asked* asked = AskTwice({});
  Turn();
  process_->SayAnswers({process_->Answer(process_->HearRuns().at(0))});
  Turn();
  EXPECT_THAT(FloatsOf(*asked), IsEmpty());
}

TEST_F(WorkerHandleTest, AModelsErrorIsAnAnswerAndNotADeath) {
  StartLoaded();
  Asked* asked = AskTwice({1});
  Turn();
  const uint64_t id = process_->HearRuns().at(0).id;
  process_->SayAnswers({{.id = id, .status = absl::InvalidArgumentError("shapes differ")}});
  Turn();
  EXPECT_EQ(asked->outcome.status, absl::InvalidArgumentError("shapes differ"));
  EXPECT_FALSE(asked->outcome.worker_lost);
  EXPECT_EQ(handle_->Free(), 2);
  EXPECT_EQ(kills_, 0);
}

TEST_F(WorkerHandleTest, BoolsAreZeroOrOneAfterTheCopy) {
  StartLoaded();
  Asked* asked = AskTwice({1});
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  const channel::Completion answer = process_->Answer(run);
  process_->Region(run)[0] = std::byte{0xff};
  process_->SayAnswers({answer});
  Turn();
  ASSERT_EQ(asked->outcomes, 1);
  EXPECT_EQ(asked->outcome.outputs.at(0).bytes[0], std::byte{1});
}

TEST_F(WorkerHandleTest, AnIdleExecutorGetsARecordOfItsOwn) {
  StartLoaded(2, 1 << 20);
  for (int i = 0; i < 2; ++i) AskTwice({1});
  Turn();
  for (int i = 0; i < 2; ++i) EXPECT_THAT(process_->HearA<channel::RunRecord>().runs, SizeIs(1));
}

TEST_F(WorkerHandleTest, RunsBehindBusyExecutorsShareARecord) {
  StartLoaded(2, 1 << 20);
  for (int i = 0; i < 2; ++i) AskTwice({1});
  Turn();
  for (int i = 0; i < 2; ++i) AskTwice({1});
  EXPECT_EQ(handle_->Free(), 0);
  Turn();
  for (int i = 0; i < 2; ++i) process_->HearA<channel::RunRecord>();
  EXPECT_THAT(process_->HearA<channel::RunRecord>().runs, SizeIs(2));
}

TEST_F(WorkerHandleTest, SaysWhenThereIsRoomAgain) {
  StartLoaded(1);
  AskTwice({1});
  AskTwice({2});
  Turn();
  EXPECT_EQ(handle_->Free(), 0);
  process_->SayAnswers({process_->Answer(process_->HearRuns().at(0))});
  Turn();
  EXPECT_EQ(frees_, 1);
  EXPECT_EQ(handle_->Free(), 1);
}

TEST_F(WorkerHandleTest, InputsLargerThanTheSegmentTravelInOneOfTheirOwn) {
  StartLoaded();
  const std::vector<float> values = Ramp(100'000);
  Asked* asked = AskTwice(values);
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  EXPECT_TRUE(run.own_request_segment);
  const channel::Completion held = process_->Answer(run);
  ASSERT_TRUE(held.held);
  process_->SayAnswers({held});
  Turn();
  const auto collect = process_->HearA<channel::CollectRecord>();
  EXPECT_EQ(collect.response_bytes, held.held_bytes);
  process_->SayAnswers({process_->Collected(collect)});
  Turn();
  const std::vector<float> doubled = FloatsOf(*asked);
  ASSERT_THAT(doubled, SizeIs(values.size()));
  EXPECT_EQ(doubled[99'999], 199'998.0f);

  // The next one gets a segment for its outputs at once.
  asked = AskTwice(values);
  Turn();
  const channel::Run next = process_->HearRuns().at(0);
  EXPECT_TRUE(next.own_response_segment);
  process_->SayAnswers({process_->Answer(next)});
  Turn();
  EXPECT_EQ(FloatsOf(*asked).size(), values.size());
  EXPECT_EQ(kills_, 0);
}

TEST_F(WorkerHandleTest, LargeRunsAgainAndAgainGetLargerStandardSegments) {
  StartLoaded();
  const std::vector<float> values = Ramp(100'000);
  int large = 0;
  for (; handle_->Free() > 0 && large < limits::kOwnRunsBeforeGrowth; ++large) AnswerLarge(values);
  EXPECT_GT(large, limits::kOwnRunsBeforeGrowth / 2);
  EXPECT_EQ(handle_->Free(), 0) << "no run may be on its way while segments change";
  process_->TakeSegments();
  frees_ = 0;
  Turn();
  EXPECT_EQ(frees_, 1);
  EXPECT_EQ(handle_->Free(), 2);
  Asked* const first = AskTwice(values);
  Asked* const second = AskTwice(values);
  Turn();
  const std::vector<channel::Run> runs = process_->HearRuns();
  ASSERT_THAT(runs, SizeIs(2));
  for (const channel::Run& run : runs) {
    EXPECT_FALSE(run.own_request_segment);
    EXPECT_FALSE(run.own_response_segment);
    process_->SayAnswers({process_->Answer(run)});
  }
  Turn();
  EXPECT_EQ(FloatsOf(*first).size(), values.size());
  EXPECT_EQ(FloatsOf(*second).size(), values.size());
  EXPECT_EQ(kills_, 0);

  // When only small ones come for long, the memory is given back.
  Advance(2 * limits::kGrownSegmentsIdle + absl::Seconds(1));
  EXPECT_EQ(handle_->Free(), 0);
  process_->TakeSegments();
  Turn();
  EXPECT_EQ(handle_->Free(), 2);
  Asked* const small = AskTwice({1});
  Turn();
  process_->SayAnswers({process_->Answer(process_->HearRuns().at(0))});
  Turn();
  EXPECT_THAT(FloatsOf(*small), SizeIs(1));
  EXPECT_EQ(kills_, 0);
}

TEST_F(WorkerHandleTest, AWorkerThatDoesNotTakeItsSegmentsIsKilled) {
  StartLoaded();
  for (int i = 0; handle_->Free() > 0 && i < limits::kOwnRunsBeforeGrowth; ++i) {
    AnswerLarge(Ramp(100'000));
  }
  process_->HearA<channel::SegmentsRecord>();
  Advance(limits::kHeartbeatLost + absl::Seconds(1));
  EXPECT_GT(kills_, 0);
}

TEST_F(WorkerHandleTest, SegmentsThatWereNotSentCannotBeTaken) {
  StartLoaded();
  process_->Say(channel::SegmentsTakenRecord{});
  Turn();
  EXPECT_GT(kills_, 0);
}

TEST_F(WorkerHandleTest, ASealedWorkerSaysSoAndAnswersOn) {
  StartLoaded();
  std::string report;
  handle_->Seal([&report](const channel::SealedRecord& sealed) { report = sealed.report; });
  Turn();
  process_->HearA<channel::SealRecord>();
  EXPECT_EQ(report, "");
  process_->Say(channel::SealedRecord{.status = absl::OkStatus(), .report = "stage 2"});
  Turn();
  EXPECT_EQ(report, "stage 2");
  Asked* asked = AskTwice({1});
  Turn();
  process_->SayAnswers({process_->Answer(process_->HearRuns().at(0))});
  Turn();
  EXPECT_THAT(FloatsOf(*asked), SizeIs(1));
  EXPECT_EQ(kills_, 0);
}

TEST_F(WorkerHandleTest, AWorkerThatDoesNotSealItselfIsKilled) {
  StartLoaded();
  handle_->Seal([](const channel::SealedRecord&) { ADD_FAILURE() << "it said nothing"; });
  process_->HearA<channel::SealRecord>();
  Advance(limits::kHeartbeatLost + absl::Seconds(1));
  EXPECT_GT(kills_, 0);
}

TEST_F(WorkerHandleTest, ASealThatNobodyAskedForBreaksTheRules) {
  StartLoaded();
  process_->Say(channel::SealedRecord{.status = absl::OkStatus(), .report = "stage 2"});
  Turn();
  EXPECT_GT(kills_, 0);
}

TEST_F(WorkerHandleTest, WhatTheSandboxForbadeIsTold) {
  StartLoaded();
  Asked* asked = AskTwice({1});
  Turn();
  process_->HearRuns();
  process_->Say(channel::DyingRecord{.signal = SIGSYS, .system_call = SYS_socket});
  Turn();
  EXPECT_THAT(std::string(base::Message(asked->outcome.status)),
              HasSubstr("the model called socket"));
  EXPECT_TRUE(asked->outcome.crashed);
}

TEST_F(WorkerHandleTest, OutputsBeyondTheLimitAreForgotten) {
  StartLoaded();
  Asked* asked = AskTwice({1});
  Turn();
  const uint64_t id = process_->HearRuns().at(0).id;
  process_->SayAnswers({{.id = id, .held = true, .held_bytes = limits::kTensorBytesMax + 1}});
  Turn();
  EXPECT_EQ(process_->HearA<channel::CollectRecord>().response_bytes, 0u);
  EXPECT_EQ(asked->outcome.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(asked->outcome.worker_lost);
  EXPECT_EQ(handle_->slots_out(), 0u);
}

TEST_F(WorkerHandleTest, WhatTheRuntimeKeepsIsNeverWrittenAgain) {
  StartLoaded();
  AskTwice({1});
  Turn();
  const channel::Run kept = process_->HearRuns().at(0);
  channel::Completion answer = process_->Answer(kept);
  answer.inputs_retained = true;
  process_->SayAnswers({answer});
  Turn();
  std::set<uint64_t> offsets;
  while (true) {  // Until the standard segment has no place left.
    AskTwice({2});
    Turn();
    const channel::Run run = process_->HearRuns().at(0);
    if (run.own_request_segment) break;
    offsets.insert(run.inputs[0].offset);
    answer = process_->Answer(run);
    answer.inputs_retained = true;
    process_->SayAnswers({answer});
    Turn();
  }
  EXPECT_EQ(offsets.count(kept.inputs[0].offset), 0u);
  EXPECT_EQ(offsets.size(), 64u * 1024 / 64 - 1);
}

TEST_F(WorkerHandleTest, StopsWhenItsRunsAreAnswered) {
  StartLoaded();
  Asked* asked = AskTwice({1});
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  handle_->Stop();
  EXPECT_EQ(handle_->Free(), 0);
  process_->HearA<channel::StopRecord>();
  process_->SayAnswers({process_->Answer(run)});
  process_->Close();
  handle_->OnProcessEnded(0);
  Turn();
  EXPECT_THAT(FloatsOf(*asked), ElementsAre(2));
  EXPECT_EQ(end_, End::kStopped);
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(kills_, 0);
}

TEST_F(WorkerHandleTest, IsKilledWhenItDoesNotStop) {
  StartLoaded();
  handle_->Stop();
  Advance(limits::kStopGrace - absl::Milliseconds(200));
  EXPECT_EQ(kills_, 0);
  Advance(absl::Milliseconds(600));
  EXPECT_GT(kills_, 0);
  handle_->OnProcessEnded(kKillStatus);
  Turn();
  EXPECT_EQ(end_, End::kStopped);
}

TEST_F(WorkerHandleTest, AWorkerThatIsNotWantedWhileItLoadsIsKilled) {
  Start();
  process_->Say(channel::HelloRecord{});
  Turn();
  handle_->Stop();
  EXPECT_GT(kills_, 0);
  handle_->OnProcessEnded(kKillStatus);
  Turn();
  EXPECT_EQ(end_, End::kStopped);
}

TEST_F(WorkerHandleTest, TellsWhyAModelDoesNotLoad) {
  Start();
  process_->Say(channel::HelloRecord{});
  process_->Say(channel::LoadFailedRecord{.status = absl::NotFoundError("no tag \"serve\"")});
  Turn();
  EXPECT_EQ(end_, End::kLoadFailed);
  EXPECT_EQ(reason_, absl::NotFoundError("no tag \"serve\""));
  handle_->OnProcessEnded(kExitOneStatus);
  Turn();
  EXPECT_EQ(ends_, 1);
}

TEST_F(WorkerHandleTest, SettingsThatFitNoRecordFailTheLoad) {
  auto loop = loop::EventLoop::Create(clock_);
  ASSERT_TRUE(loop.ok());
  loop_ = *std::move(loop);
  FakeProcess::Pair pair = FakeProcess::Make(1);
  pair.parts.load.session_config.assign(limits::kRecordBytesMax, 'c');
  process_ = std::move(pair.process);
  handle_ =
      std::make_unique<WorkerHandle>(*loop_, std::move(pair.parts), this, [this] { ++kills_; });
  process_->Say(channel::HelloRecord{});
  Turn();
  EXPECT_EQ(end_, End::kLoadFailed);
  EXPECT_THAT(Text(reason_), HasSubstr("the settings of this model"));
  EXPECT_GT(kills_, 0);
}

TEST_F(WorkerHandleTest, AWorkerThatDiesGivesBackItsRuns) {
  StartLoaded();
  const Asked* first = AskTwice({1});
  const Asked* second = AskTwice({2});
  Turn();
  process_->Say(channel::DyingRecord{.signal = 11});
  Turn();
  ExpectLost(*first, "the worker of model half, version 3 died (SIGSEGV)");
  ExpectLost(*second, "(SIGSEGV)");
  EXPECT_EQ(ends_, 0);
  handle_->OnProcessEnded(kSegvStatus);
  Turn();
  EXPECT_EQ(end_, End::kDied);
  EXPECT_THAT(Text(reason_), HasSubstr("killed by SIGSEGV"));
  EXPECT_EQ(ends_, 1);
}

TEST_F(WorkerHandleTest, AnAnswerBeforeDeathCounts) {
  StartLoaded();
  Asked* answered = AskTwice({1});
  Asked* lost = AskTwice({2});
  Turn();
  process_->SayAnswers({process_->Answer(process_->HearRuns().at(0))});
  process_->Close();
  handle_->OnProcessEnded(kKillStatus);
  Turn();
  EXPECT_THAT(FloatsOf(*answered), ElementsAre(2));
  ExpectLost(*lost, "died");
}

TEST_F(WorkerHandleTest, AClosedChannelIsTheEndEvenIfTheProcessLivesOn) {
  StartLoaded();
  const Asked* asked = AskTwice({1});
  Turn();
  process_->Close();
  Turn();
  ExpectLost(*asked, "died");
  Advance(absl::Seconds(1));
  EXPECT_GT(kills_, 0);
}

TEST_F(WorkerHandleTest, AWorkerThatFallsSilentIsKilled) {
  StartLoaded();
  Advance(absl::Minutes(1));  // Nothing is out: it owes no heartbeat.
  EXPECT_EQ(kills_, 0);
  const Asked* asked = AskTwice({1});
  for (int i = 0; i < 50; ++i) {
    process_->Say(channel::HeartbeatRecord{});
    Advance(limits::kHeartbeatEvery);
  }
  EXPECT_EQ(kills_, 0);
  Advance(limits::kHeartbeatLost + absl::Milliseconds(300));
  EXPECT_GT(kills_, 0);
  ExpectLost(*asked, "stopped answering");
}

TEST_F(WorkerHandleTest, AFrontThatWasHeldUpDoesNotBlameTheWorker) {
  StartLoaded();
  AskTwice({1});
  Turn();
  clock_.Advance(absl::Hours(1));
  Turn();
  EXPECT_EQ(kills_, 0);
  Advance(limits::kHeartbeatLost + absl::Milliseconds(300));
  EXPECT_GT(kills_, 0);
}

TEST_F(WorkerHandleTest, ARunThatNeverEndsIsEnded) {
  StartLoaded();
  const Asked* asked = AskTwice({1}, clock_.Now() + absl::Seconds(5));
  const absl::Time limit = clock_.Now() + absl::Seconds(5) + limits::kRunOverrun;
  while (clock_.Now() < limit) {
    process_->Say(channel::HeartbeatRecord{});
    Advance(limits::kHeartbeatEvery);
  }
  EXPECT_EQ(kills_, 0);
  process_->Say(channel::HeartbeatRecord{});
  Advance(absl::Milliseconds(300));
  EXPECT_GT(kills_, 0);
  ExpectLost(*asked, "after its deadline");
}

TEST_F(WorkerHandleTest, ALoadThatNeverEndsIsEnded) {
  Start();
  process_->Say(channel::HelloRecord{});
  clock_.Advance(limits::kLoadWaitMax);
  Turn();
  EXPECT_EQ(kills_, 0);
  clock_.Advance(absl::Seconds(1));
  Turn();
  EXPECT_GT(kills_, 0);
}

TEST_F(WorkerHandleTest, ALoadEndsWhenItsOwnLimitSays) {
  load_wait_max_ = absl::Seconds(2);
  Start();
  process_->Say(channel::HelloRecord{});
  Advance(absl::Seconds(2));
  EXPECT_EQ(kills_, 0);
  Advance(absl::Milliseconds(200));
  EXPECT_GT(kills_, 0);
  handle_->OnProcessEnded(SIGKILL);
  Turn();
  EXPECT_THAT(base::Message(reason_), HasSubstr("did not load within 2s (load_timeout_ms"));
}

TEST_F(WorkerHandleTest, AStoppedProcessIsKilled) {
  StartLoaded();
  const Asked* asked = AskTwice({1});
  handle_->OnProcessStopped();
  Turn();
  EXPECT_GT(kills_, 0);
  ExpectLost(*asked, "stopped by a signal");
}

TEST_F(WorkerHandleTest, DestructionAnswersWhatIsOut) {
  StartLoaded();
  const Asked* sent = AskTwice({1});
  Turn();
  const Asked* staged = AskTwice({2});
  handle_.reset();
  Turn();
  for (const Asked* asked : {sent, staged}) {
    EXPECT_EQ(asked->outcomes, 1);
    EXPECT_TRUE(asked->outcome.worker_lost);
  }
  EXPECT_EQ(kills_, 1);
  process_->HearRuns();
  EXPECT_TRUE(process_->front_gone());
}

TEST_F(WorkerHandleTest, AnOutcomeMaySubmitTheNextRun) {
  StartLoaded();
  const std::vector<float> values = {1};
  const tensor::TensorView view{tensor::DType::kFloat, {1}, std::as_bytes(std::span(values))};
  int outcomes = 0;
  const auto submit = [&](RunDone done) {
    handle_->Submit({.signature = FakeProcess::kTwice, .inputs = {{view}}}, std::move(done));
  };
  submit([&](RunOutcome) {
    ++outcomes;
    submit([&](RunOutcome) { ++outcomes; });
  });
  for (int i = 0; i < 2; ++i) {
    Turn();
    process_->SayAnswers({process_->Answer(process_->HearRuns().at(0))});
    Turn();
  }
  EXPECT_EQ(outcomes, 2);
}

}  // namespace
}  // namespace tensord::fleet
