// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/recycled_block.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "gtest/gtest.h"

namespace tensord::base {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

RecycledBlock Block(size_t capacity) {
  RecycledBlock block;
  EXPECT_TRUE(block.Grow(capacity));
  return block;
}

TEST(RecycledBlock, GrowsWithItsBytes) {
  RecycledBlock block = Block(1000);
  ASSERT_GE(block.capacity(), 1000u);
  std::memset(block.data(), 7, 1000);
  ASSERT_TRUE(block.Grow(40 * kMiB));
  EXPECT_GE(block.capacity(), 40 * kMiB);
  EXPECT_EQ(block.data()[999], std::byte{7});
  block.data()[40 * kMiB - 1] = std::byte{1};
}

TEST(RecycledBlock, AFreedBlockIsUsedAgain) {
  RecycledBlock first = Block(3 * kMiB);
  const std::byte* place = first.data();
  first.Clear();
  EXPECT_EQ(first.capacity(), 0u);
  const RecycledBlock second = Block(2 * kMiB + 5);
  EXPECT_EQ(second.data(), place);
  EXPECT_EQ(second.capacity(), 3 * kMiB);
}

TEST(RecycledBlock, WhatIsKeptHasALimit) {
  {
    std::vector<RecycledBlock> blocks;
    while (blocks.size() * kMiB <= 2 * limits::kRecycledBytesKept) blocks.push_back(Block(kMiB));
  }
  EXPECT_LE(RecycledBlock::BytesKept(), limits::kRecycledBytesKept);
  EXPECT_GT(RecycledBlock::BytesKept(), 0u);
}

TEST(RecycledBlock, WhatIsInUseAgainCountsSoThatNobodyGathersPagesForNothing) {
  std::vector<RecycledBlock> held;
  for (size_t i = 0; i < 3 * limits::kRecycledBytesKept / kMiB; ++i) {
    Block(kMiB).Clear();
    held.push_back(Block(1));
  }
  EXPECT_LE(RecycledBlock::BytesKept(), limits::kRecycledBytesKept);
  size_t bytes = 0;
  for (const RecycledBlock& block : held) bytes += block.capacity();
  EXPECT_LE(bytes, limits::kRecycledBytesKept + held.size() * (size_t{64} << 10));
}

TEST(RecycledBlock, OneThatGrewCountsNoMore) {
  Block(2 * kMiB).Clear();
  RecycledBlock block = Block(2 * kMiB);
  const size_t before = RecycledBlock::BytesKept();
  ASSERT_TRUE(block.Grow(64 * kMiB));
  EXPECT_LT(RecycledBlock::BytesKept(), before);
}

TEST(RecycledBlock, AVeryLargeOneGoesBackToTheKernel) {
  const size_t before = RecycledBlock::BytesKept();
  Block(limits::kRecycledBlockBytesMax + 1).Clear();
  EXPECT_EQ(RecycledBlock::BytesKept(), before);
}

TEST(RecycledBlock, WhatTheMachineDoesNotHaveIsRefusedAndChangesNothing) {
  RecycledBlock block = Block(10);
  const size_t capacity = block.capacity();
  EXPECT_FALSE(block.Grow(SIZE_MAX));
  EXPECT_FALSE(block.Grow(size_t{1} << 60));
  EXPECT_EQ(block.capacity(), capacity);
}

TEST(RecycledBlock, ThreadsShareWhatIsKept) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int turn = 0; turn < 200; ++turn) {
        RecycledBlock block = Block(static_cast<size_t>(i + 1) * kMiB / 4);
        block.data()[turn] = static_cast<std::byte>(i);
        EXPECT_EQ(block.data()[turn], static_cast<std::byte>(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(RecycledBlock::BytesKept(), limits::kRecycledBytesKept);
}

}  // namespace
}  // namespace tensord::base
