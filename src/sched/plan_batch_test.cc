// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/plan_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"

namespace tensord::sched {
namespace {

using tensor::Criticality;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch();

absl::Time At(int milliseconds) { return kStart + absl::Milliseconds(milliseconds); }

Pending Waiting(CallId id, int64_t rows = 1, absl::Time deadline = At(10'000)) {
  return {.id = id,
          .rows = rows,
          .bytes = 4,
          .arrived = kStart,
          .due = DueTime(kStart, deadline),
          .deadline = deadline};
}

BatchLimits Rows(int64_t rows_max) { return {.rows_max = rows_max, .bytes_max = 1000}; }

// S(b) = 4 ms + 0.5 ms b.
const ServiceTime& Learnt() {
  static const ServiceTime* const service = [] {
    auto* learnt = new ServiceTime();  // NOLINT: lives as long as the tests.
    for (int i = 0; i < 50; ++i) {
      for (const int64_t rows : {1, 2, 4, 8, 16, 32}) {
        learnt->Add(rows, absl::Milliseconds(4) + rows * absl::Microseconds(500));
      }
    }
    return learnt;
  }();
  return *service;
}

BatchPlan PlanOne(const std::vector<Pending>& calls, const BatchLimits& limits,
                  absl::Time now = At(1), const ServiceTime* service = nullptr,
                  PlanRules rules = {}) {
  const Lane lane{.calls = calls, .limits = limits, .service = service};
  return PlanBatch(std::span(&lane, 1), rules, now);
}

TEST(PlanBatch, TakesWhatWaitsNow) {
  const BatchPlan plan = PlanOne({Waiting(1), Waiting(2, 3)}, Rows(64));
  EXPECT_THAT(plan.batch, ElementsAre(1, 2));
  EXPECT_EQ(plan.rows, 4);
  EXPECT_EQ(plan.pad_rows, 0);
}

TEST(PlanBatch, PlansNothingForAnEmptyQueue) {
  EXPECT_THAT(PlanOne({}, Rows(64)).batch, IsEmpty());
  EXPECT_THAT(PlanBatch({}, {}, At(1)).batch, IsEmpty());
}

TEST(PlanBatch, StopsAtTheRowsThatABatchMayHave) {
  EXPECT_THAT(PlanOne({Waiting(1, 3), Waiting(2, 2), Waiting(3)}, Rows(4)).batch, ElementsAre(1));
  EXPECT_THAT(PlanOne({Waiting(1, 3), Waiting(2), Waiting(3)}, Rows(4)).batch, ElementsAre(1, 2));
}

TEST(PlanBatch, StopsAtTheBytesThatABatchMayHave) {
  BatchLimits limits = Rows(64);
  limits.bytes_max = 8;
  EXPECT_THAT(PlanOne({Waiting(1), Waiting(2), Waiting(3)}, limits).batch, ElementsAre(1, 2));
}

TEST(PlanBatch, RunsACallThatIsLargerThanABatchByItself) {
  EXPECT_THAT(PlanOne({Waiting(1, 100), Waiting(2)}, Rows(4)).batch, ElementsAre(1));
}

TEST(PlanBatch, RunsLoneCallsOneByOne) {
  EXPECT_THAT(PlanOne({Waiting(1, 0), Waiting(2, -1)}, {.together = false}).batch, ElementsAre(1));
}

TEST(PlanBatch, ServesTheLaneWhoseHeadComesFirst) {
  const std::vector<Pending> late = {Waiting(1, 1, At(500))};
  const std::vector<Pending> soon = {Waiting(2, 1, At(200))};
  const std::vector<Lane> lanes = {{.calls = late, .limits = Rows(4)},
                                   {.calls = soon, .limits = Rows(4)}};
  const BatchPlan plan = PlanBatch(lanes, {}, At(1));
  EXPECT_EQ(plan.lane, 1u);
  EXPECT_THAT(plan.batch, ElementsAre(2));
}

TEST(PlanBatch, WaitsOnlyWhenAnOperatorSetATimeout) {
  BatchLimits limits = Rows(4);
  limits.wait_max = absl::Milliseconds(10);
  const std::vector<Pending> queue = {Waiting(7)};

  const BatchPlan early = PlanOne(queue, limits, At(9));
  EXPECT_THAT(early.batch, IsEmpty());
  EXPECT_EQ(early.wake, At(10));
  EXPECT_THAT(PlanOne(queue, limits, At(10)).batch, ElementsAre(7));
}

TEST(PlanBatch, LeavesBeforeTheTimeoutWhenFullOrClosedOrClosing) {
  BatchLimits limits = Rows(4);
  limits.wait_max = absl::Milliseconds(10);
  EXPECT_THAT(PlanOne({Waiting(1, 4)}, limits).batch, ElementsAre(1));
  EXPECT_THAT(PlanOne({Waiting(1, 3), Waiting(2, 2)}, limits).batch, ElementsAre(1));
  EXPECT_THAT(PlanOne({Waiting(1)}, limits, At(1), nullptr, {.closing = true}).batch,
              ElementsAre(1));
}

TEST(PlanBatch, LeavesBeforeTheTimeoutWhenItWouldMissADeadline) {
  BatchLimits limits = Rows(4);
  limits.wait_max = absl::Seconds(1);
  const std::vector<Pending> queue = {Waiting(1, 1, At(20))};  // A run takes 4.5 ms.
  const BatchPlan early = PlanOne(queue, limits, At(1), &Learnt());
  EXPECT_THAT(early.batch, IsEmpty());
  EXPECT_GT(early.wake, At(14));
  EXPECT_LT(early.wake, At(16));
  EXPECT_THAT(PlanOne(queue, limits, early.wake, &Learnt()).batch, ElementsAre(1));
}

TEST(PlanBatch, ALaneThatWaitsDoesNotHoldUpAnother) {
  BatchLimits waits = Rows(4);
  waits.wait_max = absl::Milliseconds(10);
  const std::vector<Pending> first = {Waiting(1, 1, At(100))};
  const std::vector<Pending> second = {Waiting(2, 1, At(200))};
  const std::vector<Lane> lanes = {{.calls = first, .limits = waits},
                                   {.calls = second, .limits = Rows(4)}};
  EXPECT_THAT(PlanBatch(lanes, {}, At(1)).batch, ElementsAre(2));
}

TEST(PlanBatch, PadsToTheNextAllowedSize) {
  const std::vector<int64_t> allowed = {2, 8, 32};
  EXPECT_EQ(PadRows(1, allowed), 1);
  EXPECT_EQ(PadRows(2, allowed), 0);
  EXPECT_EQ(PadRows(3, allowed), 5);
  EXPECT_EQ(PadRows(33, allowed), 0);
  EXPECT_EQ(PadRows(3, {}), 0);

  BatchLimits limits = Rows(32);
  limits.allowed_rows = allowed;
  const BatchPlan plan = PlanOne({Waiting(1), Waiting(2, 2)}, limits);
  EXPECT_EQ(plan.rows, 3);
  EXPECT_EQ(plan.pad_rows, 5);
}

TEST(PlanBatch, DropsWhatCannotFinishInTime) {
  // A run takes 4.5 ms; the first has 3 ms left.
  const BatchPlan plan =
      PlanOne({Waiting(1, 1, At(4)), Waiting(2, 1, At(100))}, Rows(32), At(1), &Learnt());
  EXPECT_THAT(plan.hopeless, ElementsAre(1));
  EXPECT_THAT(plan.batch, ElementsAre(2));
}

TEST(PlanBatch, DropsWhatEvenTheShortestOfRunsWouldBeLateForThoughNothingElseWaits) {
  BatchLimits waits = Rows(32);
  waits.wait_max = absl::Milliseconds(10);
  for (const BatchLimits& limits : {Rows(32), waits}) {
    const BatchPlan plan =
        PlanOne({Waiting(1, 1, At(4)), Waiting(2, 1, At(5))}, limits, At(1), &Learnt());
    EXPECT_THAT(plan.hopeless, ElementsAre(1, 2));
    EXPECT_THAT(plan.batch, IsEmpty());
  }
}

TEST(PlanBatch, RunsWhatOnlyAShortRunWouldSaveWhenNothingElseWaits) {
  ServiceTime service;  // 6 ms on average.
  for (int i = 0; i < 41; ++i) service.Add(1, absl::Milliseconds(i % 2 == 0 ? 2 : 10));
  const BatchPlan plan = PlanOne({Waiting(1, 1, At(4))}, Rows(32), At(1), &service);
  EXPECT_THAT(plan.hopeless, IsEmpty());
  EXPECT_THAT(plan.batch, ElementsAre(1));
}

TEST(PlanBatch, RunsTrialsAloneWhenNothingElseWaits) {
  std::vector<Pending> queue = {Waiting(1, 1, At(4)), Waiting(2, 1, At(5))};
  queue[1].trial = true;
  EXPECT_THAT(PlanOne(queue, Rows(32), At(1), &Learnt()).hopeless, ElementsAre(1));
  EXPECT_THAT(PlanOne(queue, Rows(32), At(1), &Learnt()).batch, ElementsAre(2));
  queue[0].trial = true;
  EXPECT_THAT(PlanOne(queue, Rows(32), At(1), &Learnt()).batch, ElementsAre(1));
}

TEST(PlanBatch, JudgesBySizesThatRunsArePaddedTo) {
  BatchLimits limits = Rows(32);
  const std::vector<int64_t> allowed = {32};
  limits.allowed_rows = allowed;
  ServiceTime service;
  for (int i = 0; i < 41; ++i) service.Add(32, absl::Milliseconds(20));
  const std::vector<Pending> queue = {Waiting(1, 1, At(20))};
  EXPECT_THAT(PlanOne(queue, limits, At(1), &service).hopeless, ElementsAre(1));
  EXPECT_THAT(PlanOne(queue, Rows(32), At(1), &service).batch, ElementsAre(1)) << "less, perhaps";
}

TEST(PlanBatch, KeepsABatchSmallEnoughForItsMembers) {
  // Alone the first ends at 5.5 ms, with the second, of 4 rows, at 7.5.
  const BatchPlan plan =
      PlanOne({Waiting(1, 1, At(6)), Waiting(2, 4, At(100))}, Rows(32), At(1), &Learnt());
  EXPECT_THAT(plan.hopeless, IsEmpty());
  EXPECT_THAT(plan.batch, ElementsAre(1));
}

TEST(PlanBatch, FullBatchesGoBeforeLateCallsWhenMoreThanOneBatchWaits) {
  // A batch of 4 ends at 7 ms. The first call would make it in a run of its own; the others are
  // more than one batch.
  std::vector<Pending> queue = {Waiting(1, 1, At(6))};
  for (CallId id = 2; id <= 9; ++id) queue.push_back(Waiting(id, 1, At(100)));
  const BatchPlan plan = PlanOne(queue, Rows(4), At(1), &Learnt());
  EXPECT_THAT(plan.hopeless, IsEmpty());
  EXPECT_THAT(plan.batch, ElementsAre(2, 3, 4, 5));
}

TEST(PlanBatch, FullBatchesGoBeforeCallsThatWouldProbablyBeInTimeButNotSurely) {
  ServiceTime service;  // A batch of 4 takes 6 ms on average, and 10 in half of all cases.
  for (int i = 0; i < 41; ++i) service.Add(4, absl::Milliseconds(i % 2 == 0 ? 2 : 10));
  std::vector<Pending> queue = {Waiting(1, 1, At(9))};
  for (CallId id = 2; id <= 9; ++id) queue.push_back(Waiting(id, 1, At(100)));
  EXPECT_THAT(PlanOne(queue, Rows(4), At(1), &service).batch, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(PlanOne(queue, Rows(4), At(1), &service).hopeless, IsEmpty()) << "by itself, perhaps";
}

TEST(PlanBatch, SheddableCrowdsDoNotPushAsideCriticalCalls) {
  std::vector<Pending> queue = {Waiting(1, 1, At(6))};
  for (CallId id = 2; id <= 9; ++id) {
    queue.push_back(Waiting(id, 1, At(100)));
    queue.back().criticality = Criticality::kSheddable;
  }
  EXPECT_THAT(PlanOne(queue, Rows(4), At(1), &Learnt()).batch, ElementsAre(1, 2));
}

TEST(PlanBatch, ServesTheNewestFirstWhenCallsDieAndNothingIsKnown) {
  std::vector<Pending> queue;
  for (int i = 0; i < 5; ++i) {
    queue.push_back(Waiting(static_cast<CallId>(i) + 1, 1, At(100 + i)));
    queue.back().arrived = At(i);
  }
  EXPECT_THAT(PlanOne(queue, Rows(2), At(6), nullptr, {.newest_first = true}).batch,
              ElementsAre(5, 4));
  EXPECT_THAT(PlanOne(queue, Rows(2), At(6), &Learnt(), {.newest_first = true}).batch,
              ElementsAre(1, 2));
}

TEST(Order, ClassThenDueThenArrival) {
  Pending plain = Waiting(1, 1, At(100));
  Pending urgent = Waiting(2, 1, At(50));
  Pending critical = Waiting(3, 1, At(500));
  critical.criticality = Criticality::kCriticalPlus;
  Pending later = plain;
  later.arrived = At(1);
  EXPECT_TRUE(Before(urgent, plain));
  EXPECT_TRUE(Before(critical, urgent));
  EXPECT_TRUE(Before(plain, later));
  EXPECT_FALSE(Before(plain, plain));
}

TEST(Order, APatientCallBecomesUrgent) {
  EXPECT_EQ(DueTime(At(5), absl::InfiniteFuture()), At(5) + limits::kPatienceMax);
  EXPECT_EQ(DueTime(At(5), At(100)), At(100));
}

}  // namespace
}  // namespace tensord::sched
