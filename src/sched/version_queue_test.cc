// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/version_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sched_limits.h"
#include "loop/testing/fake_timers.h"
#include "sched/testing/fake_worker.h"
#include "sched/testing/sched_fixtures.h"

namespace tensord::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One queue, workers that copy x to y, and the answers by the name that a test gave its calls.
class VersionQueueTest : public ::testing::Test {
 protected:
  struct CallSpec {
    tensor::Shape shape = {1, 2};
    int64_t rows = 1;
    absl::Duration timeout = absl::Hours(1);
    tensor::Criticality criticality = tensor::Criticality::kCritical;
    bool retry = false;
  };

  void Make(QueueOptions options = {}) {
    options.model = "half";
    options.version = 3;
    if (options.signatures.empty()) options.signatures = {OpenSignature()};
    queue_ = std::make_unique<VersionQueue>(timers_, std::move(options));
  }
  FakeWorker& AddWorker(int executors = 1) {
    FakeWorker& worker = *workers_.emplace_back(std::make_unique<FakeWorker>(timers_, executors));
    worker.on_free = [this] { queue_->OnWorkerFree(); };
    queue_->AddWorker(&worker);
    return worker;
  }
  // The payload counts from 100 * name.
  CallId Submit(int name, const CallSpec& spec) {
    return SubmitInputs(name, Floats(spec.shape, static_cast<float>(100 * name)), spec);
  }
  CallId Submit(int name) { return Submit(name, {}); }
  CallId SubmitInputs(int name, OwnedViews inputs, const CallSpec& spec) {
    return queue_->Submit({.inputs = std::move(inputs.tensors),
                           .keep = std::move(inputs.keep),
                           .rows = spec.rows,
                           .arrived = timers_.Now(),
                           .deadline = timers_.Now() + spec.timeout,
                           .criticality = spec.criticality,
                           .retry = spec.retry,
                           .done = [this, name](CallResult result) {
                             EXPECT_FALSE(answers_.contains(name)) << "answered twice: " << name;
                             order_.push_back(name);
                             answers_[name] = std::move(result);
                           }});
  }
  absl::Status StatusOf(int name) {
    return answers_.contains(name) ? answers_[name].status : absl::UnknownError("no answer");
  }
  std::vector<float> ValuesOf(int name) {
    EXPECT_TRUE(StatusOf(name).ok()) << StatusOf(name);
    if (answers_[name].outputs.size() != 1) return {};
    return FloatsOf(answers_[name].outputs[0]);
  }

  loop::FakeTimers timers_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::unique_ptr<VersionQueue> queue_;
  std::map<int, CallResult> answers_;
  std::vector<int> order_;
};

std::vector<int64_t> RowsOfRuns(const FakeWorker& worker) {
  std::vector<int64_t> rows;
  for (const FakeRun& run : worker.runs) rows.push_back(run.rows);
  return rows;
}

TEST_F(VersionQueueTest, AnIdleWorkerTakesACallAtOnce) {
  Make();
  FakeWorker& worker = AddWorker();
  Submit(1);
  EXPECT_EQ(worker.out(), 1u);
  EXPECT_THAT(answers_, IsEmpty());
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(ValuesOf(1), ElementsAre(100, 101));
  EXPECT_EQ(answers_[1].run_time, absl::Milliseconds(1));
  EXPECT_EQ(answers_[1].batch_rows, 1);
}

TEST_F(VersionQueueTest, WhatQueuesUpBehindARunIsTheNextBatch) {
  Make();
  FakeWorker& worker = AddWorker();
  Submit(1);
  Submit(2, {.shape = {2, 2}, .rows = 2});
  Submit(3);
  timers_.Advance(absl::Milliseconds(2));
  EXPECT_THAT(RowsOfRuns(worker), ElementsAre(1, 3));
  EXPECT_THAT(ValuesOf(2), ElementsAre(200, 201, 202, 203));
  EXPECT_THAT(ValuesOf(3), ElementsAre(300, 301));
  EXPECT_EQ(answers_[3].batch_rows, 3);
  EXPECT_EQ(answers_[3].queued, absl::Milliseconds(1));
}

TEST_F(VersionQueueTest, ACallOfSeveralSignaturesSharesItsRunWithNoOther) {
  Make();
  FakeWorker& worker = AddWorker();
  Submit(1);
  for (int name = 2; name <= 3; ++name) {
    OwnedViews inputs = Floats({1, 2}, 0);
    queue_->Submit(
        {.more_signatures = {0, 0},
         .inputs = std::move(inputs.tensors),
         .keep = std::move(inputs.keep),
         .rows = 1,
         .arrived = timers_.Now(),
         .done = [this, name](CallResult result) { answers_[name] = std::move(result); }});
  }
  Submit(4);
  timers_.Advance(absl::Milliseconds(10));
  for (int name = 1; name <= 4; ++name) EXPECT_TRUE(StatusOf(name).ok()) << StatusOf(name);
  EXPECT_THAT(RowsOfRuns(worker), ElementsAre(1, 1, 1, 1));
  int together = 0;
  for (const FakeRun& run : worker.runs) together += run.more_signatures.size() == 2 ? 1 : 0;
  EXPECT_EQ(together, 2);
}

TEST_F(VersionQueueTest, OnlyRunsKnownToBeShortAreStagedBehindABusyExecutor) {
  Make();
  FakeWorker& worker = AddWorker();
  worker.staged_max = 1;
  absl::Duration time = absl::Microseconds(100);
  worker.time = [&](const FakeRun&) { return time; };
  Submit(1);
  Submit(2);
  EXPECT_EQ(worker.out(), 1u) << "nothing is known yet";
  timers_.Advance(absl::Seconds(1));
  int name = 2;
  const auto run_many = [&] {
    for (int i = 0; i < 40; ++i) {
      Submit(++name);
      timers_.Advance(absl::Seconds(1));
    }
    Submit(++name);
    Submit(++name);
  };
  run_many();
  EXPECT_EQ(worker.out(), 2u);
  timers_.Advance(absl::Seconds(1));
  time = absl::Milliseconds(5);
  run_many();
  EXPECT_EQ(worker.out(), 1u);
}

TEST_F(VersionQueueTest, AModelThatGainsNothingFromBatchesIsRunCallByCall) {
  Make();
  FakeWorker& worker = AddWorker();
  worker.time = [](const FakeRun& run) {
    return absl::Microseconds(200) + absl::Microseconds(19'800) * run.rows;
  };
  int name = 0;
  for (int i = 0; i < 200; ++i) {  // Bursts of seven: one runs at once, six wait together.
    for (int j = 0; j < 7; ++j) Submit(++name);
    timers_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(queue_->stats().signatures[0].rows_cap, 1);
  EXPECT_THAT(RowsOfRuns(worker), ::testing::Contains(6));
  int64_t larger = 0;
  const size_t runs = worker.runs.size();
  for (size_t i = runs - 500; i < runs; ++i) larger += worker.runs[i].rows > 1 ? 1 : 0;
  EXPECT_LE(larger, 16) << "only now and then, to learn whether it still holds";
  EXPECT_GT(larger, 0);
}

TEST_F(VersionQueueTest, OtherRowShapesGoToTheirOwnBatch) {
  Make();
  FakeWorker& worker = AddWorker();
  Submit(1);
  Submit(2, {.shape = {1, 5}});
  Submit(3);
  Submit(4, {.shape = {1, 5}});
  Submit(5);
  timers_.Advance(absl::Milliseconds(3));
  EXPECT_THAT(RowsOfRuns(worker), ElementsAre(1, 2, 2));
  EXPECT_THAT(ValuesOf(4), ElementsAre(400, 401, 402, 403, 404));
  EXPECT_THAT(order_, ElementsAre(1, 2, 4, 3, 5));
}

TEST_F(VersionQueueTest, CallsWithoutRowsRunAlone) {
  Make();
  FakeWorker& worker = AddWorker();
  Submit(1);
  Submit(2, {.shape = {0, 2}, .rows = 0});
  Submit(3, {.shape = {}, .rows = -1});
  Submit(4);
  timers_.Advance(absl::Milliseconds(4));
  EXPECT_EQ(worker.runs.size(), 4u);
  EXPECT_EQ(answers_[2].outputs[0].shape, (tensor::Shape{0, 2}));
  EXPECT_THAT(ValuesOf(3), ElementsAre(300));
}

TEST_F(VersionQueueTest, SignaturesWithFixedRowsAreNotBatched) {
  QueueOptions options;
  options.signatures = {{.inputs = 1, .open = SignatureRows::Open::kNo}};
  Make(std::move(options));
  FakeWorker& worker = AddWorker();
  for (int i = 1; i <= 3; ++i) Submit(i);
  timers_.Advance(absl::Milliseconds(3));
  EXPECT_THAT(RowsOfRuns(worker), ElementsAre(1, 1, 1));
}

TEST_F(VersionQueueTest, StringsAreCutAndPackedAgain) {
  Make();
  AddWorker();
  SubmitInputs(1, Strings({1, 1}, {"first"}), {});
  SubmitInputs(2, Strings({2, 1}, {"two", ""}), {.rows = 2});
  SubmitInputs(3, Strings({1, 1}, {"a longer three"}), {});
  timers_.Advance(absl::Milliseconds(2));
  EXPECT_EQ(answers_[3].batch_rows, 3);
  EXPECT_THAT(StringsOf(answers_[2].outputs[0]), ElementsAre("two", ""));
  EXPECT_THAT(StringsOf(answers_[3].outputs[0]), ElementsAre("a longer three"));
}

TEST_F(VersionQueueTest, TheAnswerGoesOutAtTheDeadlineWhileTheModelRuns) {
  Make();
  FakeWorker& worker = AddWorker();
  worker.time = [](const FakeRun&) { return absl::Seconds(1); };
  Submit(1, {.timeout = absl::Milliseconds(10)});
  timers_.Advance(absl::Milliseconds(9));
  EXPECT_THAT(answers_, IsEmpty());
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(StatusOf(1)));
  EXPECT_EQ(queue_->stats().running_runs, 1);
  timers_.Advance(absl::Seconds(1));  // The outcome is dropped.
  EXPECT_EQ(queue_->stats().running_runs, 0);
  EXPECT_EQ(queue_->stats().wasted_run_time, absl::Seconds(1));
}

TEST_F(VersionQueueTest, ExpiredCallsNeverReachTheWorker) {
  Make();
  FakeWorker& worker = AddWorker();
  worker.time = [](const FakeRun&) { return absl::Milliseconds(50); };
  Submit(1);
  Submit(2, {.timeout = absl::Milliseconds(20)});
  Submit(3, {.timeout = absl::ZeroDuration()});
  EXPECT_THAT(answers_, IsEmpty()) << "done ran inside Submit";
  timers_.Advance(absl::Milliseconds(30));
  EXPECT_THAT(order_, ElementsAre(3, 2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(StatusOf(2)));
  timers_.Advance(absl::Seconds(1));
  EXPECT_EQ(worker.runs.size(), 1u);
}

TEST_F(VersionQueueTest, CancelledWhileQueuedIsGone) {
  Make();
  FakeWorker& worker = AddWorker();
  Submit(1);
  const CallId two = Submit(2);
  Submit(3);
  queue_->Cancel(two);
  queue_->Cancel(two);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(order_, ElementsAre(1, 3));
  EXPECT_THAT(RowsOfRuns(worker), ElementsAre(1, 1));
  EXPECT_EQ(queue_->stats().cancelled, 1);
}

TEST_F(VersionQueueTest, CancelledWhileRunningIsDroppedAndItsMatesAreNot) {
  Make();
  AddWorker();
  Submit(1);
  const CallId two = Submit(2);
  Submit(3);
  timers_.Advance(absl::Milliseconds(1));
  queue_->Cancel(two);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(order_, ElementsAre(1, 3));
  EXPECT_THAT(ValuesOf(3), ElementsAre(300, 301));
}

TEST_F(VersionQueueTest, ARefusalCanBeCancelledBeforeItIsDelivered) {
  Make();
  AddWorker();
  queue_->Cancel(Submit(1, {.timeout = absl::ZeroDuration()}));
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(answers_, IsEmpty());
}

TEST_F(VersionQueueTest, OneOddCallFailsAlone) {
  Make();
  FakeWorker& worker = AddWorker();
  worker.model = [](const FakeRun&, const OwnedViews& inputs) -> absl::StatusOr<OwnedViews> {
    for (const float value : FloatsOf(inputs.tensors[0])) {
      if (value >= 300 && value < 400) return absl::InvalidArgumentError("indices[0] = 300");
    }
    return inputs;
  };
  for (int i = 1; i <= 4; ++i) Submit(i);
  timers_.Advance(absl::Milliseconds(5));
  EXPECT_THAT(RowsOfRuns(worker), ElementsAre(1, 3, 1, 1, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(3)));
  EXPECT_THAT(ValuesOf(2), ElementsAre(200, 201));
  EXPECT_THAT(ValuesOf(4), ElementsAre(400, 401));
  EXPECT_EQ(queue_->stats().second_runs, 3);
}

TEST_F(VersionQueueTest, AModelThatDoesNotKeepRowsApartIsNotBatchedAgain) {
  Make();
  FakeWorker& worker = AddWorker();
  worker.model = [](const FakeRun&, const OwnedViews&) { return Floats({1, 1}, 7); };
  for (int i = 1; i <= 3; ++i) Submit(i);
  timers_.Advance(absl::Milliseconds(4));
  EXPECT_THAT(RowsOfRuns(worker), ElementsAre(1, 2, 1, 1));
  for (int i = 1; i <= 3; ++i) EXPECT_THAT(ValuesOf(i), ElementsAre(7)) << i;
  EXPECT_TRUE(queue_->stats().signatures[0].refused_batching);

  for (int i = 4; i <= 6; ++i) Submit(i);
  timers_.Advance(absl::Milliseconds(3));
  EXPECT_THAT(RowsOfRuns(worker), ElementsAre(1, 2, 1, 1, 1, 1, 1));
}

TEST_F(VersionQueueTest, StatefulModelsAreNeitherBatchedNorRunTwice) {
  Make({.stateful = true});
  FakeWorker& worker = AddWorker();
  AddWorker(1);
  worker.kills = [](const FakeRun&, const OwnedViews&) { return true; };
  Submit(1);
  timers_.Advance(absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(1)));
  for (int i = 2; i <= 4; ++i) Submit(i);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(RowsOfRuns(*workers_[1]), ElementsAre(1, 1, 1));
}

// ---- Workers that die ------------------------------------------------------------------------

TEST_F(VersionQueueTest, DispatchedCallsAreToldAndQueuedOnesWaitForTheRestart) {
  Make();
  FakeWorker& worker = AddWorker();
  Submit(1);
  Submit(2);
  Submit(3, {.timeout = absl::Milliseconds(20)});
  worker.Die("killed by signal 11");
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(1)));
  EXPECT_THAT(std::string(StatusOf(1).message()), HasSubstr("killed by signal 11"));
  queue_->RemoveWorker(&worker);
  timers_.Advance(absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(StatusOf(3)));
  AddWorker();
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(ValuesOf(2), ElementsAre(200, 201));
}

TEST_F(VersionQueueTest, AReplicaRunsTheCallsOfADeadWorkerOneByOne) {
  Make();
  FakeWorker& first = AddWorker();
  Submit(1);
  for (int i = 2; i <= 4; ++i) Submit(i);
  timers_.Advance(absl::Milliseconds(1));  // Two to four run together now.
  FakeWorker& second = AddWorker();
  first.Die();
  timers_.Advance(absl::Milliseconds(3));
  EXPECT_THAT(RowsOfRuns(second), ElementsAre(1, 1, 1));
  for (int i = 2; i <= 4; ++i) EXPECT_TRUE(StatusOf(i).ok()) << i;
}

TEST_F(VersionQueueTest, ACallThatEndsTwoWorkersIsNotRunAgainAndItsMatesAreSaved) {
  Make();
  const auto kills = [](const FakeRun&, const OwnedViews& inputs) {
    for (const float value : FloatsOf(inputs.tensors[0])) {
      if (value == 300) return true;
    }
    return false;
  };
  AddWorker().kills = kills;
  Submit(1);
  for (int i = 2; i <= 4; ++i) Submit(i);
  timers_.Advance(absl::Milliseconds(1));
  AddWorker().kills = kills;
  AddWorker().kills = kills;
  timers_.Advance(absl::Milliseconds(10));
  EXPECT_TRUE(absl::IsInternal(StatusOf(3))) << StatusOf(3);
  EXPECT_TRUE(StatusOf(2).ok());
  EXPECT_TRUE(StatusOf(4).ok());
  EXPECT_EQ(queue_->stats().workers_lost, 2);
  EXPECT_EQ(queue_->stats().workers, 1);
}

TEST_F(VersionQueueTest, ASuspectRunsWhereNothingElseRuns) {
  Make();
  FakeWorker& first = AddWorker();
  Submit(1);
  FakeWorker& second = AddWorker(4);
  second.time = [](const FakeRun&) { return absl::Milliseconds(10); };
  Submit(2);  // On the second worker.
  first.Die();
  Submit(3);  // Has to wait: the suspect comes first, and it waits for silence.
  timers_.Advance(absl::Milliseconds(9));
  EXPECT_EQ(second.runs.size(), 1u);
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(second.out(), 1u);
  timers_.Advance(absl::Milliseconds(20));
  EXPECT_THAT(order_, ElementsAre(2, 1, 3));
}

// ---- Calls that end workers ------------------------------------------------------------------

class PoisonTest : public VersionQueueTest {
 protected:
  // Dies of any run with the payload of call 3.
  FakeWorker& AddMortal() {
    FakeWorker& worker = AddWorker();
    worker.kills = [](const FakeRun&, const OwnedViews& inputs) {
      for (const float value : FloatsOf(inputs.tensors[0])) {
        if (value == 300) return true;
      }
      return false;
    };
    return worker;
  }
  // The same call again, under another name.
  void SubmitPoison(int name, const CallSpec& spec = {}) {
    SubmitInputs(name, Floats({1, 2}, 300), spec);
  }
  void Kill() {
    AddMortal();
    SubmitPoison(static_cast<int>(workers_.size()) + 100);
    timers_.Advance(absl::Milliseconds(1));
    queue_->RemoveWorker(workers_.back().get());
  }
};

TEST_F(PoisonTest, WithoutAReplicaASecondCrashIsTheLast) {
  Make();
  Kill();
  Kill();
  FakeWorker& third = AddMortal();
  SubmitPoison(3);
  Submit(4);
  timers_.Advance(absl::Milliseconds(5));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(101)));
  EXPECT_TRUE(absl::IsInternal(StatusOf(102)));
  EXPECT_TRUE(absl::IsInternal(StatusOf(3)));
  EXPECT_THAT(std::string(StatusOf(3).message()), HasSubstr("ended two workers"));
  EXPECT_TRUE(StatusOf(4).ok());
  EXPECT_TRUE(third.alive());
  EXPECT_EQ(queue_->stats().refused_poison, 1);
}

TEST_F(PoisonTest, PoisonGetsOneMoreTrialAMinute) {
  Make();
  Kill();
  Kill();
  for (int minute = 0; minute < 3; ++minute) {
    timers_.Advance(limits::kPoisonKept);
    FakeWorker& next = AddMortal();
    for (int i = 0; i < 20; ++i) SubmitPoison(1000 + 100 * minute + i);
    timers_.Advance(absl::Seconds(1));
    EXPECT_EQ(next.runs.size(), 1u);
    queue_->RemoveWorker(&next);
    AddWorker();
    timers_.Advance(absl::Seconds(1));
    queue_->RemoveWorker(workers_.back().get());
  }
}

TEST_F(PoisonTest, WhatWaitsAndIsAlikeWaitsWithTheSuspect) {
  Make();
  FakeWorker& first = AddMortal();
  SubmitPoison(1);
  for (int i = 5; i < 8; ++i) Submit(i);
  for (int i = 10; i < 13; ++i) SubmitPoison(i);
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_FALSE(first.alive());
  queue_->RemoveWorker(&first);
  FakeWorker& second = AddMortal();
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_FALSE(second.alive()) << "the suspect alone, first";
  EXPECT_EQ(second.runs.size(), 1u);
  queue_->RemoveWorker(&second);
  FakeWorker& third = AddMortal();
  timers_.Advance(absl::Seconds(1));
  // Convicted while they waited, and so they are not run, either.
  EXPECT_TRUE(third.alive());
  for (int i = 5; i < 8; ++i) EXPECT_TRUE(StatusOf(i).ok()) << i;
  for (int i = 10; i < 13; ++i) EXPECT_TRUE(absl::IsInternal(StatusOf(i))) << StatusOf(i);
}

TEST_F(PoisonTest, ASuspectThatDoesNoHarmSetsThoseLikeItFree) {
  Make();
  FakeWorker& first = AddWorker();
  for (int i = 1; i <= 9; ++i) SubmitPoison(i);
  first.Die("killed by signal 11", /*crashed=*/true);  // By chance, with the first in it.
  queue_->RemoveWorker(&first);
  FakeWorker& second = AddWorker();
  timers_.Advance(absl::Milliseconds(5));
  EXPECT_THAT(RowsOfRuns(second), ElementsAre(1, 7)) << "one trial, then all the rest at once";
  for (int i = 2; i <= 9; ++i) EXPECT_TRUE(StatusOf(i).ok()) << i;
}

TEST_F(PoisonTest, AKillFromOutsideBlamesNobody) {
  Make();
  FakeWorker& first = AddWorker();
  SubmitPoison(1);
  first.Die();
  queue_->RemoveWorker(&first);
  FakeWorker& second = AddWorker();
  for (int i = 2; i <= 4; ++i) SubmitPoison(i);
  timers_.Advance(absl::Milliseconds(5));
  EXPECT_THAT(RowsOfRuns(second), ElementsAre(1, 2));
}

// A call that has its worker killed (out of memory, perhaps), or calls exit.
TEST_F(PoisonTest, ACallThatEndsThreeWorkersInARowIsRefusedThoughNobodyCanExplainIt) {
  Make();
  for (int i = 1; i <= 3; ++i) {
    FakeWorker& worker = AddWorker();
    SubmitPoison(i);
    EXPECT_EQ(worker.runs.size(), 1u);
    worker.Die("killed by signal 9", /*crashed=*/false, /*unexplained=*/true);
    queue_->RemoveWorker(&worker);
    timers_.Advance(absl::Milliseconds(1));
  }
  AddWorker();
  SubmitPoison(4);
  Submit(5);
  timers_.Advance(absl::Milliseconds(5));
  for (const int lost : {1, 2}) EXPECT_TRUE(absl::IsUnavailable(StatusOf(lost))) << lost;
  EXPECT_TRUE(absl::IsInternal(StatusOf(4))) << StatusOf(4);
  EXPECT_TRUE(StatusOf(5).ok()) << StatusOf(5);
}

TEST_F(PoisonTest, AnUnexplainedDeathDoesNotHoldUpThoseThatAreAlike) {
  Make();
  FakeWorker& first = AddWorker();
  SubmitPoison(1);
  first.Die("killed by signal 9", /*crashed=*/false, /*unexplained=*/true);
  queue_->RemoveWorker(&first);
  FakeWorker& second = AddWorker();
  for (int i = 2; i <= 4; ++i) SubmitPoison(i);
  timers_.Advance(absl::Milliseconds(5));
  EXPECT_THAT(RowsOfRuns(second), ElementsAre(1, 2)) << "not one by one";
  // They ran, and so a later death is the first in a row.
  SubmitPoison(5);
  second.Die("killed by signal 9", /*crashed=*/false, /*unexplained=*/true);
  queue_->RemoveWorker(&second);
  FakeWorker& third = AddWorker();
  for (int i = 6; i <= 8; ++i) SubmitPoison(i);
  timers_.Advance(absl::Milliseconds(5));
  EXPECT_THAT(RowsOfRuns(third), ElementsAre(1, 2));
}

TEST_F(PoisonTest, ARunThatEverybodyHasLeftMayNotGoOnForLong) {
  Make();
  FakeWorker& worker = AddWorker();
  for (int i = 0; i < 100; ++i) {
    Submit(1000 + i);
    timers_.Advance(absl::Milliseconds(5));
  }
  worker.time = [](const FakeRun&) { return absl::Hours(1); };
  const CallId call = Submit(1);
  EXPECT_EQ(worker.runs.back().kill_at, absl::InfiniteFuture());
  timers_.Advance(absl::Seconds(1));
  queue_->Cancel(call);
  EXPECT_EQ(worker.runs.back().kill_at, timers_.Now() + limits::kAbandonedMin)
      << "such runs take a millisecond";
  for (size_t i = 0; i + 1 < worker.runs.size(); ++i) {
    EXPECT_EQ(worker.runs[i].kill_at, absl::InfiniteFuture()) << "it had ended";
  }
}

TEST_F(PoisonTest, ARunOfUnknownLengthThatEverybodyHasLeftGetsMoreTime) {
  Make();
  FakeWorker& worker = AddWorker();
  worker.time = [](const FakeRun&) { return absl::Hours(1); };
  Submit(1, {.timeout = absl::Seconds(1)});
  timers_.Advance(absl::Seconds(2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(StatusOf(1)));
  EXPECT_EQ(worker.runs[0].kill_at,
            worker.runs[0].started + absl::Seconds(1) + limits::kRunOverrun);
}

TEST_F(PoisonTest, ACallThatHangsIsRememberedThoughItsClientHasLeft) {
  Make();
  FakeWorker& first = AddWorker();
  first.time = [](const FakeRun&) { return absl::Hours(1); };
  SubmitPoison(1, {.timeout = absl::Seconds(1)});
  timers_.Advance(absl::Seconds(2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(StatusOf(1)));
  first.Die("it was ended: a run went on long after its deadline", /*crashed=*/true);
  queue_->RemoveWorker(&first);
  FakeWorker& second = AddWorker();
  for (int i = 2; i <= 4; ++i) SubmitPoison(i);
  EXPECT_EQ(second.runs.size(), 1u);
  EXPECT_EQ(second.runs[0].rows, 1);
  timers_.Advance(absl::Milliseconds(5));
  for (int i = 2; i <= 4; ++i) EXPECT_TRUE(StatusOf(i).ok()) << i;
}

TEST_F(PoisonTest, OnlySoManySuspectsWait) {
  Make();
  Kill();
  for (size_t i = 0; i < limits::kPoisonsMax; ++i) SubmitPoison(static_cast<int>(1000 + i));
  SubmitPoison(3);
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsResourceExhausted(StatusOf(3))) << StatusOf(3);
  EXPECT_GT(answers_[3].retry_after, absl::ZeroDuration());
}

TEST_F(PoisonTest, ARunMayNotTakeLongerThanTheOperatorAllows) {
  QueueOptions options;
  options.run_timeout = absl::Seconds(3);
  Make(std::move(options));
  FakeWorker& worker = AddWorker();
  Submit(1);
  EXPECT_EQ(worker.runs[0].kill_at, timers_.Now() + absl::Seconds(3));
}

// ---- Drain, failure, destruction -------------------------------------------------------------

TEST_F(VersionQueueTest, DrainEndsWhenAllIsAnswered) {
  Make();
  AddWorker();
  Submit(1);
  Submit(2);
  bool drained = false;
  queue_->Drain([&] { drained = true; });
  timers_.Advance(absl::Milliseconds(1));
  Submit(3);  // Late, but served.
  EXPECT_FALSE(drained);
  timers_.Advance(absl::Milliseconds(2));
  EXPECT_TRUE(drained);
  EXPECT_TRUE(StatusOf(3).ok());
  Submit(4);
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(4)));
}

TEST_F(VersionQueueTest, DrainOfAnIdleQueueEndsAtOnceButNotInsideTheCall) {
  Make();
  bool drained = false;
  queue_->Drain([&] {
    drained = true;
    queue_.reset();
  });
  EXPECT_FALSE(drained);
  timers_.Advance(absl::ZeroDuration());
  EXPECT_TRUE(drained);
}

TEST_F(VersionQueueTest, ACallThatComesJustBeforeTheDrainEndsIsServed) {
  Make();
  AddWorker();
  bool drained = false;
  queue_->Drain([&] {
    drained = true;
    EXPECT_TRUE(StatusOf(1).ok());
  });
  Submit(1);
  timers_.Advance(absl::ZeroDuration());
  EXPECT_FALSE(drained);
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(drained);
}

TEST_F(VersionQueueTest, FailAllAnswersQueuedAndRunning) {
  Make();
  AddWorker();
  for (int i = 1; i <= 3; ++i) Submit(i);
  queue_->FailAll(absl::UnavailableError("unloaded by force"));
  EXPECT_EQ(answers_.size(), 3u);
  EXPECT_THAT(std::string(StatusOf(2).message()), HasSubstr("by force"));
  timers_.Advance(absl::Seconds(1));
}

TEST_F(VersionQueueTest, ADoneMayDestroyTheQueueAndRunsThatAreOutKeepTheirInputs) {
  Make();
  AddWorker(2);
  queue_->Submit({.inputs = Floats({1, 1}, 1).tensors,
                  .keep = nullptr,
                  .arrived = timers_.Now(),
                  .deadline = timers_.Now(),
                  .done = [this](const CallResult&) { queue_.reset(); }});
  auto inputs = Floats({1, 1}, 2);
  workers_[0]->on_free = nullptr;
  workers_[0]->time = [](const FakeRun&) { return absl::Seconds(1); };
  SubmitInputs(2, std::move(inputs), {});
  timers_.Advance(absl::Seconds(5));  // The worker reads the inputs when it ends.
  EXPECT_EQ(queue_, nullptr);
  EXPECT_THAT(answers_, IsEmpty());
}

TEST_F(VersionQueueTest, ACallMaySubmitTheNextOne) {
  Make();
  AddWorker();
  int left = 100;
  std::function<void()> next = [&] {
    OwnedViews inputs = Floats({1, 1}, 5);
    queue_->Submit({.inputs = inputs.tensors,
                    .keep = inputs.keep,
                    .rows = 1,
                    .arrived = timers_.Now(),
                    .done = [&](const CallResult& result) {
                      ASSERT_TRUE(result.status.ok());
                      if (--left > 0) next();
                    }});
  };
  next();
  timers_.Advance(absl::Seconds(1));
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace tensord::sched
