// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/poison_list.h"

#include <gtest/gtest.h>

#include "base/sched_limits.h"
#include "sched/testing/sched_fixtures.h"

namespace tensord::sched {
namespace {

using Standing = PoisonList::Standing;

Call CallOf(float first, tensor::Shape shape = {1, 2}, int signature = 0) {
  OwnedViews inputs = Floats(shape, first);
  return {.signature = signature, .inputs = inputs.tensors, .keep = inputs.keep};
}

class PoisonListTest : public ::testing::Test {
 protected:
  Standing Find(const Call& call) { return list_.Find(call, now_); }

  absl::Time now_ = absl::UnixEpoch();
  PoisonList list_;
};

TEST_F(PoisonListTest, ACallIsKnownByItsContentShapeAndSignature) {
  list_.NoteCrash(CallOf(1), false, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kSuspect);
  EXPECT_EQ(Find(CallOf(2)), Standing::kClean);
  EXPECT_EQ(Find(CallOf(1, {2, 1})), Standing::kClean);
  EXPECT_EQ(Find(CallOf(1, {1, 2}, 1)), Standing::kClean);
}

TEST_F(PoisonListTest, OnlyACrashAloneAfterAnotherCrashConvicts) {
  list_.NoteCrash(CallOf(1), true, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kSuspect) << "the first one may be chance";
  list_.NoteCrash(CallOf(1), false, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kSuspect) << "others ran there, too";
  list_.NoteCrash(CallOf(1), true, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kPoison);
}

TEST_F(PoisonListTest, PoisonIsTriedOnceMoreAfterAWhileAndForgottenInTheEnd) {
  list_.NoteCrash(CallOf(1), false, now_);
  list_.NoteCrash(CallOf(1), true, now_);
  now_ += limits::kPoisonKept;
  EXPECT_EQ(Find(CallOf(1)), Standing::kSuspect);
  list_.NoteCrash(CallOf(1), true, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kPoison);
  now_ += absl::Hours(1);
  EXPECT_EQ(Find(CallOf(1)), Standing::kClean);
}

TEST_F(PoisonListTest, WhatRanWithoutHarmIsClean) {
  list_.NoteCrash(CallOf(1), false, now_);
  list_.Clear(CallOf(1));
  EXPECT_EQ(Find(CallOf(1)), Standing::kClean);
  list_.Clear(CallOf(1));
}

TEST_F(PoisonListTest, DeathsThatNobodyCanExplainConvictAfterThreeInARow) {
  list_.NoteDeath(CallOf(1), true, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kNoted) << "the machine may have been short of memory";
  list_.NoteDeath(CallOf(1), false, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kSuspect);
  list_.NoteDeath(CallOf(1), false, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kSuspect) << "others ran there, too";
  list_.NoteDeath(CallOf(1), true, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kPoison);
}

TEST_F(PoisonListTest, OneFineRunWipesOutDeathsThatNobodyCanExplain) {
  for (int i = 0; i < 10; ++i) {
    list_.NoteDeath(CallOf(1), true, now_);
    EXPECT_EQ(Find(CallOf(1)), Standing::kNoted);
    list_.Clear(CallOf(1));
  }
}

TEST_F(PoisonListTest, ACrashWeighsMoreThanADeathThatNobodyCanExplain) {
  list_.NoteDeath(CallOf(1), true, now_);
  list_.NoteCrash(CallOf(1), true, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kSuspect);
  list_.NoteCrash(CallOf(1), true, now_);
  EXPECT_EQ(Find(CallOf(1)), Standing::kPoison);
}

TEST_F(PoisonListTest, WhatIsOnlyNotedMakesRoomFirst) {
  for (size_t i = 0; i < limits::kPoisonsMax - 1; ++i) {
    list_.NoteCrash(CallOf(static_cast<float>(i)), false, now_);
  }
  list_.NoteDeath(CallOf(1000), false, now_);
  list_.NoteCrash(CallOf(1001), false, now_);
  list_.NoteDeath(CallOf(1002), false, now_);
  EXPECT_EQ(Find(CallOf(0)), Standing::kSuspect);
  EXPECT_EQ(Find(CallOf(1000)), Standing::kClean);
  EXPECT_EQ(Find(CallOf(1001)), Standing::kSuspect);
  EXPECT_EQ(Find(CallOf(1002)), Standing::kClean) << "no room for what is no proof";
}

TEST_F(PoisonListTest, TheOldestIsForgottenWhenTooManyAreKept) {
  for (size_t i = 0; i <= limits::kPoisonsMax; ++i) {
    list_.NoteCrash(CallOf(static_cast<float>(i)), false, now_);
  }
  EXPECT_EQ(Find(CallOf(0)), Standing::kClean);
  EXPECT_EQ(Find(CallOf(1)), Standing::kSuspect);
}

}  // namespace
}  // namespace tensord::sched
