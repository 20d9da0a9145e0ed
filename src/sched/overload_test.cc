// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// What the queue does when more comes than it can serve: early refusals, shares, bytes, hints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "loop/testing/fake_timers.h"
#include "sched/testing/fake_worker.h"
#include "sched/testing/sched_fixtures.h"
#include "sched/version_queue.h"

namespace tensord::sched {
namespace {

using ::testing::HasSubstr;

// One executor, runs of 10 ms for each row, calls of one row, without batching.
class OverloadTest : public ::testing::Test {
 protected:
  struct CallSpec {
    ClientBucket client = 0;
    absl::Duration timeout = absl::Hours(1);
    tensor::Criticality criticality = tensor::Criticality::kCritical;
    int64_t columns = 1;
  };

  void Make(QueueOptions options = {}) {
    options.model = "m";
    if (options.signatures.empty()) options.signatures = {OpenSignature()};
    options.rows_max = 1;
    queue_ = std::make_unique<VersionQueue>(timers_, std::move(options));
    worker_.time = [](const FakeRun&) { return absl::Milliseconds(10); };
    worker_.on_free = [this] { queue_->OnWorkerFree(); };
    queue_->AddWorker(&worker_);
  }
  void Seed() {
    const RunTimeHint hint{.signature = 0, .rows = 1, .time = absl::Milliseconds(10)};
    queue_->Seed({&hint, 1});
  }
  CallId Submit(int name, const CallSpec& spec) {
    OwnedViews inputs = Floats({1, spec.columns}, 1);
    return queue_->Submit({.inputs = std::move(inputs.tensors),
                           .keep = std::move(inputs.keep),
                           .rows = 1,
                           .arrived = timers_.Now(),
                           .deadline = timers_.Now() + spec.timeout,
                           .criticality = spec.criticality,
                           .client = spec.client,
                           .done = [this, name](CallResult result) {
                             order_.push_back(name);
                             answers_[name] = std::move(result);
                           }});
  }
  absl::Status StatusOf(int name) {
    return answers_.contains(name) ? answers_[name].status : absl::UnknownError("no answer");
  }
  // The place of a call in the order of the answers.
  ptrdiff_t PlaceOf(int name) {
    return std::find(order_.begin(), order_.end(), name) - order_.begin();
  }

  loop::FakeTimers timers_;
  FakeWorker worker_{timers_};
  std::unique_ptr<VersionQueue> queue_;
  std::map<int, CallResult> answers_;
  std::vector<int> order_;
};

TEST_F(OverloadTest, HintsRefuseAtOnceWhatWouldBeLate) {
  Make();
  Seed();
  for (int i = 1; i <= 20; ++i) Submit(i, {});  // 200 ms of work.
  Submit(30, {.timeout = absl::Milliseconds(100)});
  Submit(31, {.timeout = absl::Seconds(1)});
  timers_.Advance(absl::Microseconds(1));
  // Patient calls go last: 30 is before those that could wait an hour.
  EXPECT_FALSE(answers_.contains(30));
  Submit(32, {.timeout = absl::Milliseconds(15)});
  timers_.Advance(absl::Microseconds(1));
  EXPECT_TRUE(absl::IsResourceExhausted(StatusOf(32))) << StatusOf(32);
  EXPECT_GT(answers_[32].retry_after, absl::ZeroDuration());
}

TEST_F(OverloadTest, ACallIsRefusedByItsHeadWhereItsBodyCouldNotHelpIt) {
  Make();
  Seed();
  const auto early = [&](absl::Duration timeout) {
    return queue_->RefuseEarly(
        {.bytes = 100'000, .arrived = timers_.Now(), .deadline = timers_.Now() + timeout});
  };
  EXPECT_FALSE(early(absl::Milliseconds(1)).has_value()) << "an empty queue refuses nothing";
  for (int i = 1; i <= 20; ++i) Submit(i, {.timeout = absl::Milliseconds(100)});
  const auto refused = early(absl::Milliseconds(100));
  ASSERT_TRUE(refused.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(refused->status));
  EXPECT_THAT(std::string(refused->status.message()), HasSubstr("overloaded"));
  EXPECT_GT(refused->retry_after, absl::ZeroDuration());
  EXPECT_FALSE(early(absl::Seconds(1)).has_value()) << "it could wait until they are through";
}

TEST_F(OverloadTest, EarlyRefusalsAreCountedAsWhatTheyAre) {
  QueueOptions options;
  options.queued_calls_max = 3;
  Make(std::move(options));
  for (int i = 1; i <= 4; ++i) Submit(i, {});
  const auto refused = queue_->RefuseEarly({.bytes = 5000, .arrived = timers_.Now()});
  ASSERT_TRUE(refused.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(refused->status));
  EXPECT_THAT(std::string(refused->status.message()), HasSubstr("is full"));
  EXPECT_EQ(queue_->stats().refused_early, 1);
  EXPECT_EQ(queue_->stats().refused_full, 1);
  EXPECT_EQ(queue_->stats().submitted, 5);
}

TEST_F(OverloadTest, ACancelledCallMakesRoomAtOnce) {
  QueueOptions options;
  options.queued_calls_max = 3;
  Make(std::move(options));
  std::vector<CallId> ids;
  for (int i = 1; i <= 4; ++i) ids.push_back(Submit(i, {}));
  ASSERT_TRUE(queue_->RefuseEarly({.bytes = 5000, .arrived = timers_.Now()}).has_value());
  queue_->Cancel(ids[2]);
  EXPECT_EQ(queue_->stats().queued_calls, 2);
  EXPECT_FALSE(queue_->RefuseEarly({.bytes = 5000, .arrived = timers_.Now()}).has_value());
  for (const CallId id : ids) queue_->Cancel(id);
  EXPECT_EQ(queue_->stats().queued_calls, 0);
  EXPECT_EQ(queue_->stats().queued_bytes, 0u);
}

TEST_F(OverloadTest, ABacklogOfOneClientDoesNotDelayTheFirstCallOfAnother) {
  Make();
  Seed();
  for (int i = 0; i < 100; ++i) Submit(i, {.client = 1});
  timers_.Advance(absl::Milliseconds(35));
  Submit(1000, {.client = 2});
  Submit(1001, {.client = 2});
  timers_.Advance(absl::Seconds(2));
  EXPECT_LE(PlaceOf(1000), 6);
  EXPECT_LE(PlaceOf(1001), 8);
  EXPECT_EQ(order_.size(), 102u);
}

TEST_F(OverloadTest, AloneAClientsCallsKeepTheirOrder) {
  Make();
  Seed();
  for (int i = 0; i < 100; ++i) Submit(i, {.client = 1});
  timers_.Advance(absl::Seconds(2));
  EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
}

TEST_F(OverloadTest, AFloodLeavesRoomForOthers) {
  QueueOptions options;
  options.queued_calls_max = 40;
  Make(std::move(options));
  Seed();
  int name = 0;
  // Ten times what can be served from one client, a tenth of it from another.
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 10; ++i) Submit(++name, {.client = 1});
    if (round % 10 == 0) Submit(100'000 + round, {.client = 2});
    timers_.Advance(absl::Milliseconds(10));
  }
  timers_.Advance(absl::Seconds(2));
  int served = 0;
  for (int round = 50; round < 200; round += 10) served += StatusOf(100'000 + round).ok() ? 1 : 0;
  EXPECT_EQ(served, 15) << "of the small client, once the flood is known";
  EXPECT_GT(queue_->stats().refused_share, 500);
}

TEST_F(OverloadTest, AModelsCallsHoldTheirBytesUntilTheyAreAnswered) {
  base::ByteBudget shared(1000);
  QueueOptions options;
  options.model_bytes = std::make_shared<ModelBytes>(100, &shared);
  const std::shared_ptr<ModelBytes> bytes = options.model_bytes;
  Make(std::move(options));
  Submit(1, {.columns = 50});
  EXPECT_EQ(bytes->used(), 200u);
  Submit(2, {.columns = 225});
  EXPECT_EQ(bytes->used(), 1100u);
  Submit(3, {});
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsResourceExhausted(StatusOf(3))) << StatusOf(3);
  timers_.Advance(absl::Milliseconds(10));
  EXPECT_EQ(bytes->used(), 900u);
  const CallId last = Submit(4, {.columns = 10});
  queue_->Cancel(last);
  EXPECT_EQ(bytes->used(), 900u);
  Submit(5, {});
  queue_.reset();
  EXPECT_EQ(bytes->used(), 0u);
  EXPECT_EQ(shared.used(), 0u);
}

// ---- Deadlines that the model is too slow for ------------------------------------------------

// Ten calls a second, with deadlines of 100 ms, on a model whose runs take `run`.
class TooSlowTest : public OverloadTest {
 protected:
  void SetUp() override { Start({}); }
  void Start(QueueOptions options) {
    Make(std::move(options));
    worker_.time = [this](const FakeRun&) { return run_; };
  }
  // Patient calls, of which all are answered.
  void Teach(int runs) {
    for (int i = 0; i < runs; ++i) {
      Submit(-1, {});
      timers_.Advance(run_);
      ASSERT_TRUE(StatusOf(-1).ok());
    }
  }
  void CallsFor(absl::Duration span) {
    for (const absl::Time end = timers_.Now() + span; timers_.Now() < end;) {
      Submit(++calls_, {.timeout = absl::Milliseconds(100)});
      timers_.Advance(absl::Milliseconds(100));
    }
  }

  absl::Duration run_ = absl::Milliseconds(200);
  int calls_ = 0;
};

TEST_F(TooSlowTest, AtMostOneRunASecondIsInVain) {
  Teach(30);
  const size_t before = worker_.runs.size();
  CallsFor(absl::Seconds(20));
  EXPECT_LE(worker_.runs.size() - before, 20u);
  EXPECT_GE(worker_.runs.size() - before, 5u) << "some try whether it still is as slow";
  EXPECT_GE(queue_->stats().refused_late, 180);
  const absl::Status status = StatusOf(calls_);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is too slow for this call: the answer would come in about 200 ms, the "
                        "deadline is in 100 ms; try again in "));
  EXPECT_GT(answers_[calls_].retry_after, absl::ZeroDuration());
}

TEST_F(TooSlowTest, CallsAreServedAgainSoonAfterTheModelBecameFaster) {
  Teach(30);
  CallsFor(absl::Seconds(5));
  run_ = absl::Milliseconds(20);
  CallsFor(absl::Seconds(3));
  const int first = calls_;
  CallsFor(absl::Seconds(5));
  for (int call = first + 1; call <= calls_; ++call) {
    EXPECT_TRUE(StatusOf(call).ok()) << call << ": " << StatusOf(call);
  }
}

TEST_F(TooSlowTest, AsLongAsRunTimesAreNotKnownWhatComesRuns) {
  Teach(10);
  for (int i = 1; i <= 9; ++i) {
    Submit(i, {.timeout = absl::Milliseconds(100)});
    timers_.Advance(run_);
    EXPECT_TRUE(absl::IsDeadlineExceeded(StatusOf(i))) << StatusOf(i);
  }
  EXPECT_EQ(worker_.runs.size(), 19u);
  EXPECT_EQ(queue_->stats().refused_late, 0);
}

TEST_F(TooSlowTest, WhatHasTimeForARunIsServedBesideWhatHasNot) {
  Teach(30);
  for (int i = 0; i < 20; ++i) {
    Submit(1000 + i, {.timeout = absl::Milliseconds(250)});
    timers_.Advance(absl::Milliseconds(10));
    Submit(2000 + i, {.timeout = absl::Milliseconds(100)});
    timers_.Advance(absl::Milliseconds(290));
    EXPECT_TRUE(StatusOf(1000 + i).ok()) << StatusOf(1000 + i);
    EXPECT_TRUE(absl::IsResourceExhausted(StatusOf(2000 + i))) << StatusOf(2000 + i);
  }
}

TEST_F(TooSlowTest, WhatLostItsTimeBehindAnotherRunIsNotRun) {
  Teach(30);
  Submit(1, {});
  Submit(2, {.timeout = absl::Milliseconds(300)});  // Nothing waits; the executor is busy.
  timers_.Advance(absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsDeadlineExceeded(StatusOf(2))) << StatusOf(2);
  EXPECT_EQ(queue_->stats().hopeless, 1);
  EXPECT_EQ(worker_.out(), 0u);
}

TEST_F(TooSlowTest, WhatWaitsBehindTheHopelessHasItsTurnAtOnce) {
  QueueOptions options;
  options.signatures = {OpenSignature(), OpenSignature()};
  Start(std::move(options));
  Teach(30);
  Submit(1, {});
  Submit(2, {.timeout = absl::Milliseconds(300)});
  OwnedViews inputs = Floats({1, 1}, 1);
  queue_->Submit({.signature = 1,
                  .inputs = std::move(inputs.tensors),
                  .keep = std::move(inputs.keep),
                  .rows = 1,
                  .arrived = timers_.Now(),
                  .done = [this](CallResult result) { answers_[3] = std::move(result); }});
  timers_.Advance(absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsDeadlineExceeded(StatusOf(2))) << StatusOf(2);
  timers_.Advance(absl::Milliseconds(200));
  EXPECT_TRUE(StatusOf(3).ok()) << StatusOf(3);
}

}  // namespace
}  // namespace tensord::sched
