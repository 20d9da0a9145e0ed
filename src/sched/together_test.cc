// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Calls that come together: added one by one, handed out at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "loop/testing/fake_timers.h"
#include "sched/testing/fake_worker.h"
#include "sched/testing/sched_fixtures.h"
#include "sched/version_queue.h"

namespace tensord::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TogetherTest : public ::testing::Test {
 protected:
  // Runs take `fixed` and `per_row` for each row, and the queue knows it.
  void Make(int executors, absl::Duration fixed, absl::Duration per_row) {
    QueueOptions options;
    options.model = "m";
    options.signatures = {OpenSignature()};
    queue_ = std::make_unique<VersionQueue>(timers_, std::move(options));
    worker_ = std::make_unique<FakeWorker>(timers_, executors);
    worker_->time = [=](const FakeRun& run) { return fixed + run.rows * per_row; };
    worker_->on_free = [this] { queue_->OnWorkerFree(); };
    std::vector<RunTimeHint> hints;
    for (const int64_t rows : {1, 8, 64}) {
      hints.push_back({.signature = 0, .rows = rows, .time = fixed + rows * per_row});
    }
    queue_->Seed(hints);
    queue_->AddWorker(worker_.get());
  }
  void Add(int name, absl::Duration timeout = absl::Hours(1)) {
    OwnedViews inputs = Floats({1, 1}, static_cast<float>(name));
    queue_->Add({.inputs = std::move(inputs.tensors),
                 .keep = std::move(inputs.keep),
                 .rows = 1,
                 .arrived = timers_.Now(),
                 .deadline = timers_.Now() + timeout,
                 .done = [this, name](CallResult result) { answers_[name] = std::move(result); }});
  }
  std::vector<int64_t> RunRows() const { return worker_->RunRows(); }

  loop::FakeTimers timers_;
  std::unique_ptr<FakeWorker> worker_;
  std::unique_ptr<VersionQueue> queue_;
  std::map<int, CallResult> answers_;
};

TEST_F(TogetherTest, ShortRunsAreOneRun) {
  Make(2, absl::Microseconds(10), absl::Microseconds(1));
  for (int i = 0; i < 6; ++i) Add(i);
  EXPECT_THAT(RunRows(), IsEmpty());
  EXPECT_TRUE(queue_->waits_for_dispatch());
  queue_->Dispatch();
  EXPECT_FALSE(queue_->waits_for_dispatch());
  EXPECT_THAT(RunRows(), ElementsAre(6));
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(answers_, SizeIs(6));
}

TEST_F(TogetherTest, LongRunsAreSharedAmongTheIdleExecutors) {
  Make(2, absl::Milliseconds(10), absl::Milliseconds(1));
  for (int i = 0; i < 5; ++i) Add(i);
  queue_->Dispatch();
  EXPECT_THAT(RunRows(), ElementsAre(3, 2));
  timers_.Advance(absl::Milliseconds(20));
  EXPECT_THAT(answers_, SizeIs(5));
}

TEST_F(TogetherTest, OneIdleExecutorTakesWhatItCan) {
  Make(1, absl::Milliseconds(10), absl::Milliseconds(1));
  for (int i = 0; i < 5; ++i) Add(i);
  queue_->Dispatch();
  EXPECT_THAT(RunRows(), ElementsAre(5));
}

TEST_F(TogetherTest, AnExecutorThatBecomesIdleNeedNotBeTold) {
  Make(1, absl::Milliseconds(1), absl::Milliseconds(1));
  Add(0);
  queue_->Dispatch();
  Add(1);
  Add(2);
  timers_.Advance(absl::Milliseconds(2));  // The first run ends, and takes the others' turn.
  EXPECT_THAT(RunRows(), ElementsAre(1, 2));
  queue_->Dispatch();
  EXPECT_THAT(RunRows(), ElementsAre(1, 2));
}

TEST_F(TogetherTest, ADeadlineHoldsForWhatWasOnlyAdded) {
  Make(1, absl::Milliseconds(1), absl::Milliseconds(1));
  Add(0, absl::Milliseconds(5));
  worker_->staged_max = 0;
  queue_->RemoveWorker(worker_.get());
  timers_.Advance(absl::Milliseconds(6));
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_[0].status));
}

}  // namespace
}  // namespace tensord::sched
