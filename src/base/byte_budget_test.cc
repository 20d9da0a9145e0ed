// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/byte_budget.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

namespace tensord::base {
namespace {

TEST(ByteBudget, RefusesWhatWouldPassItsLimitAndKeepsTheRest) {
  ByteBudget budget(100);
  BytesHeld a(&budget);
  BytesHeld b(&budget);
  EXPECT_TRUE(a.GrowTo(60));
  EXPECT_FALSE(b.GrowTo(41));
  EXPECT_TRUE(b.GrowTo(40));
  EXPECT_FALSE(a.GrowTo(std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(a.bytes(), 60u);
  EXPECT_EQ(budget.used(), 100u);
}

TEST(ByteBudget, BytesComeBackOnceHoweverTheHolderGoes) {
  ByteBudget budget(100);
  {
    BytesHeld a(&budget);
    ASSERT_TRUE(a.GrowTo(30));
    BytesHeld b(std::move(a));
    BytesHeld c(&budget);
    ASSERT_TRUE(c.GrowTo(10));
    c = std::move(b);
    EXPECT_EQ(budget.used(), 30u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(ByteBudget, ManyThreadsNeverPassTheLimit) {
  ByteBudget budget(10);
  std::vector<std::thread> threads;
  std::atomic<bool> passed{false};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20000; ++n) {
        BytesHeld held(&budget);
        if (held.GrowTo(4) && budget.used() > 10) passed = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(passed);
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace tensord::base
