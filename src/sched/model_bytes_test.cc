// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/model_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tensord::sched {
namespace {

TEST(ModelBytes, AHotModelLeavesTheOthersTheirReserve) {
  base::ByteBudget shared(100);
  ModelBytes hot(10, &shared);
  ModelBytes other(10, &shared);
  EXPECT_TRUE(hot.TryTake(10));
  EXPECT_EQ(shared.used(), 0u);
  EXPECT_TRUE(hot.TryTake(100));
  EXPECT_EQ(shared.used(), 100u);
  EXPECT_FALSE(hot.TryTake(1));
  EXPECT_TRUE(other.TryTake(6));
  EXPECT_TRUE(other.TryTake(4));
  EXPECT_FALSE(other.TryTake(1));
  hot.Return(100);
  EXPECT_TRUE(other.TryTake(50));
}

TEST(ModelBytes, TheFirstCallFitsHoweverLargeItIs) {
  base::ByteBudget shared(100);
  ModelBytes model(10, &shared);
  EXPECT_TRUE(model.TryTake(1000));
  EXPECT_FALSE(model.TryTake(101));
  EXPECT_TRUE(model.TryTake(50));
  model.Return(1000);
  model.Return(50);
  EXPECT_EQ(shared.used(), 0u);
}

TEST(ModelBytes, WhateverIsTakenComesBack) {
  std::mt19937 random(1);
  base::ByteBudget shared(1000);
  ModelBytes models[] = {{50, &shared}, {0, &shared}, {400, &shared}};
  std::vector<std::pair<int, uint64_t>> held;
  for (int i = 0; i < 10000; ++i) {
    if (random() % 2 == 0 && !held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      models[held.back().first].Return(held.back().second);
      held.pop_back();
    } else {
      const int which = static_cast<int>(random() % 3);
      const uint64_t bytes = random() % 700;
      if (models[which].TryTake(bytes)) held.emplace_back(which, bytes);
    }
  }
  for (const auto& [which, bytes] : held) models[which].Return(bytes);
  EXPECT_EQ(shared.used(), 0u);
}

TEST(ModelBytesHeld, GivesBackOnce) {
  base::ByteBudget shared(100);
  auto model = std::make_shared<ModelBytes>(0, &shared);
  ASSERT_TRUE(model->TryTake(30));
  {
    ModelBytesHeld held(model, 30);
    ModelBytesHeld moved = std::move(held);
    held = ModelBytesHeld();
    EXPECT_EQ(shared.used(), 30u);
  }
  EXPECT_EQ(shared.used(), 0u);
}

}  // namespace
}  // namespace tensord::sched
