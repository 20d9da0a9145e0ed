// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/fair_share.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/limits.h"

namespace tensord::sched {
namespace {

TEST(WaterLevel, NobodyWhoAsksForLessGoesShort) {
  const auto level = [](std::vector<double> demands, double capacity) {
    return WaterLevel(demands, capacity);
  };
  EXPECT_DOUBLE_EQ(level({1000, 40, 5}, 100), 55);
  EXPECT_DOUBLE_EQ(level({1000, 1000}, 100), 50);
  EXPECT_DOUBLE_EQ(level({1000, 60, 5}, 100), 47.5);
  EXPECT_DOUBLE_EQ(level({1000}, 100), 100);
  EXPECT_TRUE(std::isinf(level({40, 60}, 100)));
  EXPECT_TRUE(std::isinf(level({}, 0)));
  EXPECT_DOUBLE_EQ(level({1}, 0), 0);
}

class FairShareTest : public ::testing::Test {
 protected:
  // Client `who` offers `offered` milliseconds of work, of which so much is admitted.
  void Offer(ClientBucket who, int offered, int admitted) {
    share_.Offer(who, absl::Milliseconds(offered), now_);
    share_.Admit(absl::Milliseconds(admitted), now_);
  }

  absl::Time now_ = absl::UnixEpoch();
  FairShare share_;
};

TEST_F(FairShareTest, WhoAsksForMoreThanItsShareIsKnownAndNobodyElse) {
  Offer(1, 1000, 80);
  Offer(2, 20, 20);
  EXPECT_TRUE(share_.OverShare(1, now_));
  EXPECT_FALSE(share_.OverShare(2, now_));
  EXPECT_FALSE(share_.OverShare(3, now_));
}

TEST_F(FairShareTest, WhenAllGetAllNobodyIsOver) {
  Offer(1, 1000, 1000);
  Offer(2, 20, 20);
  EXPECT_FALSE(share_.OverShare(1, now_));
}

TEST_F(FairShareTest, AClientAloneIsNeverOver) {
  Offer(1, 1000, 100);
  EXPECT_FALSE(share_.OverShare(1, now_));
}

TEST_F(FairShareTest, WhatWasAskedLongAgoIsForgotten) {
  Offer(1, 1000, 100);
  Offer(2, 50, 50);
  now_ += absl::Seconds(15);
  Offer(1, 40, 40);
  Offer(2, 400, 60);
  EXPECT_FALSE(share_.OverShare(1, now_));
  EXPECT_TRUE(share_.OverShare(2, now_));
  now_ += absl::Minutes(10);
  Offer(1, 400, 50);
  Offer(2, 50, 50);
  EXPECT_TRUE(share_.OverShare(1, now_));
  EXPECT_FALSE(share_.OverShare(2, now_));
}

TEST_F(FairShareTest, EachClientTakesItsTurnsBehindItsOwnCallsOnly) {
  EXPECT_EQ(share_.Turn(1, now_), now_);
  for (int i = 0; i < 100; ++i) share_.Wait(1, absl::Milliseconds(1), now_);
  EXPECT_EQ(share_.Turn(1, now_), now_ + absl::Milliseconds(100));
  EXPECT_EQ(share_.Turn(2, now_), now_);
  // Serving took longer than it was thought to: who comes now is in line all the same.
  share_.Serve(now_ + absl::Milliseconds(60));
  EXPECT_EQ(share_.Turn(2, now_ + absl::Seconds(5)), now_ + absl::Milliseconds(60));
  EXPECT_EQ(share_.Turn(1, now_ + absl::Seconds(5)), now_ + absl::Milliseconds(100));
  for (int i = 0; i < 100; ++i) share_.Leave(1);
  now_ += absl::Seconds(9);
  EXPECT_EQ(share_.Turn(1, now_), now_) << "nothing waits any more";
}

TEST_F(FairShareTest, NoBacklogMakesAClientWaitForEver) {
  for (int i = 0; i < 100; ++i) share_.Wait(1, absl::Hours(1), now_);
  EXPECT_EQ(share_.Turn(1, now_), now_ + limits::kPatienceMax);
}

}  // namespace
}  // namespace tensord::sched
