// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// TensorFlow Serving's batching parameters, where an operator set them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "loop/testing/fake_timers.h"
#include "sched/signature_policy.h"
#include "sched/testing/fake_worker.h"
#include "sched/testing/sched_fixtures.h"
#include "sched/version_queue.h"

namespace tensord::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

class BatchingTest : public ::testing::Test {
 protected:
  void Make(BatchingParameters parameters, int executors = 1) {
    QueueOptions options;
    options.model = "half";
    options.version = 3;
    options.signatures = {{.inputs = 1, .open = SignatureRows::Open::kMaybe}};
    options.batching = std::move(parameters);
    queue_ = std::make_unique<VersionQueue>(timers_, std::move(options));
    worker_ = std::make_unique<FakeWorker>(timers_, executors);
    queue_->AddWorker(worker_.get());
  }
  CallId Submit(int name, int64_t rows = 1, absl::Duration timeout = absl::InfiniteDuration()) {
    return SubmitInputs(name, Floats({rows, 1}, static_cast<float>(100 * name)), rows, timeout);
  }
  CallId SubmitInputs(int name, OwnedViews inputs, int64_t rows,
                      absl::Duration timeout = absl::InfiniteDuration()) {
    return queue_->Submit({.inputs = std::move(inputs.tensors),
                           .keep = std::move(inputs.keep),
                           .rows = rows,
                           .arrived = timers_.Now(),
                           .deadline = timers_.Now() + timeout,
                           .done = [this, name](CallResult result) {
                             EXPECT_FALSE(answers_.contains(name)) << "answered twice: " << name;
                             answers_[name] = std::move(result);
                           }});
  }
  std::vector<float> ValuesOf(int name) {
    EXPECT_TRUE(answers_.contains(name) && answers_[name].status.ok()) << name;
    if (answers_[name].outputs.size() != 1) return {};
    return FloatsOf(answers_[name].outputs[0]);
  }
  std::vector<int64_t> RunRows() const { return worker_->RunRows(); }

  loop::FakeTimers timers_;
  std::unique_ptr<FakeWorker> worker_;
  std::unique_ptr<VersionQueue> queue_;
  std::map<int, CallResult> answers_;
};

TEST_F(BatchingTest, APartFullBatchLeavesAfterTheTimeout) {
  Make({.max_batch_size = 4, .batch_timeout = absl::Milliseconds(10)});
  Submit(1);
  timers_.Advance(absl::Milliseconds(9));
  Submit(2);
  EXPECT_THAT(RunRows(), IsEmpty());
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(RunRows(), ElementsAre(2));
}

TEST_F(BatchingTest, AFullBatchLeavesAtOnce) {
  Make({.max_batch_size = 4, .batch_timeout = absl::Seconds(10)});
  Submit(1, 3);
  EXPECT_THAT(RunRows(), IsEmpty());
  Submit(2, 1);
  EXPECT_THAT(RunRows(), ElementsAre(4));
}

TEST_F(BatchingTest, ABatchIsClosedByACallThatDoesNotFit) {
  Make({.max_batch_size = 4, .batch_timeout = absl::Seconds(10)}, 2);
  Submit(1, 3);
  Submit(2, 2);
  EXPECT_THAT(RunRows(), ElementsAre(3));
}

TEST_F(BatchingTest, DrainingDoesNotWaitForTheTimeout) {
  Make({.max_batch_size = 4, .batch_timeout = absl::Seconds(10)});
  Submit(1);
  bool drained = false;
  queue_->Drain([&] { drained = true; });
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(drained);
  EXPECT_THAT(ValuesOf(1), ElementsAre(100));
}

TEST_F(BatchingTest, ACallLargerThanMaxBatchSizeIsRefused) {
  Make({.max_batch_size = 4});
  Submit(1, 5);
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsInvalidArgument(answers_[1].status));
  EXPECT_EQ(answers_[1].status.message(),
            "Task size 5 is larger than maximum input batch size 4 of model half, version 3");
}

TEST_F(BatchingTest, TheQueueIsFullAtMaxEnqueuedBatches) {
  Make({.max_batch_size = 4, .max_enqueued_batches = 2});
  Submit(1);     // Runs.
  Submit(2, 3);  // The first batch.
  Submit(3, 3);  // The second.
  Submit(4, 1);  // Fits into the second.
  Submit(5, 1);  // Does not.
  timers_.Advance(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(answers_[5].status));
  EXPECT_EQ(answers_[5].status.message(),
            "The batch scheduling queue to which this task was submitted is full; currently 2 "
            "batches enqueued and max_enqueued_batches is 2; try again");
  EXPECT_EQ(answers_.size(), 1u);
  timers_.Advance(absl::Milliseconds(3));
  EXPECT_THAT(RunRows(), ElementsAre(1, 3, 4));
}

TEST_F(BatchingTest, AsManyBatchesRunAtOnceAsThereAreBatchThreads) {
  Make({.num_batch_threads = 2}, 4);
  for (int i = 1; i <= 5; ++i) Submit(i);
  EXPECT_THAT(RunRows(), ElementsAre(1, 1));
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(RunRows(), ElementsAre(1, 1, 3));
}

TEST_F(BatchingTest, BatchesArePaddedToAnAllowedSizeAndPadRowsAreDropped) {
  Make({.max_batch_size = 8, .allowed_batch_sizes = {2, 8}});
  std::vector<float> seen;
  worker_->model = [&](const FakeRun&, const OwnedViews& inputs) -> absl::StatusOr<OwnedViews> {
    seen = FloatsOf(inputs.tensors[0]);
    return inputs;
  };
  Submit(1);
  Submit(2, 3);
  Submit(3, 2);
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(seen, ElementsAre(100, 100));
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(seen, ElementsAre(200, 201, 202, 300, 301, 300, 300, 300)) << "row 0 of the last";
  EXPECT_THAT(ValuesOf(1), ElementsAre(100));
  EXPECT_THAT(ValuesOf(2), ElementsAre(200, 201, 202));
  EXPECT_THAT(ValuesOf(3), ElementsAre(300, 301));
  EXPECT_EQ(queue_->stats().pad_rows, 4);
}

TEST_F(BatchingTest, ACallThatRunsAgainAloneIsPaddedToo) {
  Make({.max_batch_size = 8, .allowed_batch_sizes = {2, 8}});
  worker_->model = [](const FakeRun& run, const OwnedViews& inputs) -> absl::StatusOr<OwnedViews> {
    if (run.rows == 8) return absl::InvalidArgumentError("somebody is odd");
    return inputs;
  };
  for (int i = 1; i <= 4; ++i) Submit(i);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(RunRows(), ElementsAre(2, 8, 2, 2, 2));
  EXPECT_THAT(ValuesOf(3), ElementsAre(300));
}

TEST_F(BatchingTest, StringsArePaddedToo) {
  Make({.max_batch_size = 4, .allowed_batch_sizes = {4}});
  SubmitInputs(1, Strings({2, 1}, {"ab", "c"}), 2);
  timers_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(RunRows(), ElementsAre(4));
  EXPECT_THAT(StringsOf(answers_[1].outputs[0]), ElementsAre("ab", "c"));
}

// The original fails all of them.
TEST_F(BatchingTest, AModelWhoseOutputsHaveOtherRowsIsNotBatchedAnyMore) {
  for (const tensor::Shape& shape : {tensor::Shape{}, tensor::Shape{7}}) {
    Make({.max_batch_size = 4, .allowed_batch_sizes = {2, 4}});
    answers_.clear();
    worker_->model = [&](const FakeRun&, const OwnedViews&) { return Floats(shape, 1); };
    for (int i = 1; i <= 3; ++i) Submit(i);
    timers_.Advance(absl::Seconds(1));
    for (int i = 1; i <= 3; ++i) {
      ASSERT_TRUE(answers_[i].status.ok()) << answers_[i].status;
      EXPECT_EQ(answers_[i].outputs[0].shape, shape);
    }
    EXPECT_THAT(RunRows(), ElementsAre(2, 1, 1, 1)) << "padded, then each as it is";
    EXPECT_TRUE(queue_->stats().signatures[0].refused_batching);
  }
}

TEST_F(BatchingTest, ALoneCallThatFailsPaddedIsNotRunAgain) {
  Make({.max_batch_size = 4, .allowed_batch_sizes = {4}});
  worker_->model = [](const FakeRun&, const OwnedViews&) -> absl::StatusOr<OwnedViews> {
    return absl::InvalidArgumentError("no");
  };
  Submit(1);
  timers_.Advance(absl::Seconds(1));
  EXPECT_TRUE(absl::IsInvalidArgument(answers_[1].status));
  EXPECT_THAT(RunRows(), ElementsAre(4));
}

TEST_F(BatchingTest, AModelErrorStillReachesOnlyTheGuilty) {
  Make({.max_batch_size = 4});
  worker_->model = [](const FakeRun&, const OwnedViews& inputs) -> absl::StatusOr<OwnedViews> {
    for (const float value : FloatsOf(inputs.tensors[0])) {
      if (value == 300) return absl::FailedPreconditionError("table not initialized");
    }
    return inputs;
  };
  for (int i = 1; i <= 4; ++i) Submit(i);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(ValuesOf(2), ElementsAre(200));
  EXPECT_TRUE(absl::IsFailedPrecondition(answers_[3].status));
}

// ---- Splitting -------------------------------------------------------------------------------

BatchingParameters Splitting() {
  return {
      .max_batch_size = 10, .enable_large_batch_splitting = true, .max_execution_batch_size = 4};
}

TEST_F(BatchingTest, ALargeCallRunsInPiecesAndComesBackWhole) {
  Make(Splitting());
  Submit(1, 10);
  Submit(2, 2);
  Submit(3, 11);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(RunRows(), ElementsAre(4, 4, 4));
  std::vector<float> expected(10);
  std::iota(expected.begin(), expected.end(), 100.0F);
  EXPECT_THAT(ValuesOf(1), ElementsAreArray(expected));
  EXPECT_THAT(ValuesOf(2), ElementsAre(200, 201));
  EXPECT_TRUE(absl::IsInvalidArgument(answers_[3].status));
}

TEST_F(BatchingTest, StringsRunInPiecesToo) {
  Make(Splitting());
  SubmitInputs(1, Strings({5, 1}, {"a", "bb", "", "dddd", "e"}), 5);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(RunRows(), ElementsAre(4, 1));
  EXPECT_THAT(StringsOf(answers_[1].outputs[0]), ElementsAre("a", "bb", "", "dddd", "e"));
}

TEST_F(BatchingTest, TheFirstErrorOfAnyPieceFailsTheCall) {
  Make(Splitting());
  worker_->model = [](const FakeRun&, const OwnedViews& inputs) -> absl::StatusOr<OwnedViews> {
    if (FloatsOf(inputs.tensors[0])[0] == 104) return absl::InvalidArgumentError("odd");
    return inputs;
  };
  Submit(1, 10);
  timers_.Advance(absl::Seconds(1));
  EXPECT_TRUE(absl::IsInvalidArgument(answers_[1].status));
  EXPECT_THAT(RunRows(), ElementsAre(4, 4, 2));  // The third was on its way when the second failed.
  EXPECT_EQ(queue_->stats().queued_calls, 0);
}

TEST_F(BatchingTest, ALargeCallIsCancelledAndExpiresAsOne) {
  Make(Splitting());
  queue_->Cancel(Submit(1, 10));
  Submit(2, 10, absl::Milliseconds(2));
  timers_.Advance(absl::Seconds(1));
  EXPECT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_[2].status));
  const Stats stats = queue_->stats();
  EXPECT_EQ(stats.queued_calls, 0);
  EXPECT_EQ(stats.submitted, 2);
  EXPECT_EQ(stats.cancelled + stats.expired_queued + stats.expired_running, 2);
}

TEST_F(BatchingTest, ALargeCallIsRefusedWhenItsRowsDoNotFitTheQueue) {
  BatchingParameters parameters = Splitting();
  parameters.max_enqueued_batches = 2;
  Make(parameters);
  Submit(1, 8);  // Two batches, of which one runs at once.
  Submit(2, 5);  // Room for four.
  timers_.Advance(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(answers_[2].status));
  EXPECT_EQ(answers_[2].status.message(),
            "The batch scheduling queue to which this task was submitted is full; task size is 5 "
            "but scheduling capacity is only 4 (num_enqueued_batches=1, max_enqueued_batches=2, "
            "max_execution_batch_size=4); try again");
  Submit(3, 4);
  timers_.Advance(absl::Seconds(1));
  EXPECT_TRUE(answers_[3].status.ok());
}

// ---- Inputs of different inner dims ----------------------------------------------------------

BatchingParameters Padding() { return {.max_batch_size = 8, .pad_variable_length_inputs = true}; }

TEST_F(BatchingTest, InnerDimsArePaddedWithTheFirstElementOfEach) {
  Make(Padding());
  std::vector<OwnedViews> seen;
  worker_->model = [&](const FakeRun&, const OwnedViews& inputs) -> absl::StatusOr<OwnedViews> {
    seen.push_back(inputs);
    return inputs;
  };
  Submit(1);  // Keeps the executor busy.
  SubmitInputs(2, Floats({1, 3}, 200), 1);
  SubmitInputs(3, Floats({2, 2}, 300), 2);
  timers_.Advance(absl::Seconds(1));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].tensors[0].shape, (tensor::Shape{3, 3}));
  EXPECT_THAT(FloatsOf(seen[1].tensors[0]),
              ElementsAre(200, 201, 202, 300, 301, 300, 302, 303, 300));
  EXPECT_THAT(ValuesOf(3), ElementsAre(300, 301, 300, 302, 303, 300));
}

TEST_F(BatchingTest, PadRowsOfAnAllowedSizeAreAsWideAsTheRest) {
  BatchingParameters parameters = Padding();
  parameters.allowed_batch_sizes = {1, 4, 8};
  Make(parameters);
  Submit(1);
  SubmitInputs(2, Floats({1, 2}, 200), 1);
  SubmitInputs(3, Strings({1, 1}, {"other"}), 1);  // Another dtype: another batch.
  SubmitInputs(4, Floats({1, 1}, 400), 1);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(RunRows(), ElementsAre(1, 4, 1));
  EXPECT_THAT(ValuesOf(4), ElementsAre(400, 400));
}

TEST_F(BatchingTest, OneOddCallCannotMakeMuchOfItsNeighbours) {
  Make(Padding());
  Submit(1);
  SubmitInputs(2, Floats({1, 1, 1 << 14}, 0), 1);
  SubmitInputs(3, Floats({1, 1 << 14, 1}, 0), 1);  // Together: 2 GiB.
  SubmitInputs(4, Floats({1, 0, 1}, 0), 1);        // Nothing to pad it with.
  SubmitInputs(5, Floats({1}, 5), 1);              // Another rank.
  timers_.Advance(absl::Seconds(1));
  EXPECT_EQ(worker_->runs.size(), 5u);
  for (int i = 1; i <= 5; ++i) EXPECT_TRUE(answers_[i].status.ok()) << i;
  EXPECT_EQ(answers_[2].outputs[0].shape, (tensor::Shape{1, 1, 1 << 14}));
}

TEST_F(BatchingTest, PiecesOfALargeCallAreNotPadded) {
  BatchingParameters parameters = Splitting();
  parameters.pad_variable_length_inputs = true;
  Make(parameters);
  Submit(1, 5);
  SubmitInputs(2, Floats({1, 2}, 200), 1);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(ValuesOf(1), ElementsAre(100, 101, 102, 103, 104));
  EXPECT_THAT(ValuesOf(2), ElementsAre(200, 201));
}

TEST_F(BatchingTest, WithoutPaddingAnOddShapeRunsBesideItsNeighbours) {
  Make({.max_batch_size = 8});
  Submit(1);
  SubmitInputs(2, Floats({1, 3}, 200), 1);
  SubmitInputs(3, Floats({1, 2}, 300), 1);
  SubmitInputs(4, Floats({1, 3}, 400), 1);
  timers_.Advance(absl::Seconds(1));
  EXPECT_THAT(RunRows(), ElementsAre(1, 2, 1));
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(answers_[i].status.ok()) << i;
}

TEST(SignaturePolicy, RowsThatMayDependOnEachOtherShareRunsOnlyWhenAnOperatorAsks) {
  const SignatureRows coupled{.inputs = 1, .open = SignatureRows::Open::kYes, .apart = false};
  QueueOptions unasked;
  EXPECT_FALSE(SignaturePolicy(unasked, coupled).batches());
  EXPECT_TRUE(SignaturePolicy(unasked, {.inputs = 1, .open = SignatureRows::Open::kYes}).batches());
  QueueOptions promised;
  promised.rows_promised = true;
  EXPECT_TRUE(SignaturePolicy(promised, coupled).batches());
  QueueOptions asked;
  asked.batching.emplace();
  EXPECT_TRUE(SignaturePolicy(asked, coupled).batches());
}

}  // namespace
}  // namespace tensord::sched
