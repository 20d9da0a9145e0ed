// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/wide_thread.h"

#include <gtest/gtest.h>

#include <set>

namespace tensord::engine {
namespace {

TEST(WideThread, RunsEverythingInOneThreadThatIsNotTheCallers) {
  WideThread wide;
  std::set<std::thread::id> threads;
  int runs = 0;
  for (int i = 0; i < 1000; ++i) {
    wide.Run([&] {
      threads.insert(std::this_thread::get_id());
      ++runs;
    });
    ASSERT_EQ(runs, i + 1);
  }
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(WideThread, TakesCallersOneAfterTheOther) {
  WideThread wide;
  int runs = 0;
  for (int i = 0; i < 10; ++i) {
    std::thread([&] { wide.Run([&] { ++runs; }); }).join();
  }
  EXPECT_EQ(runs, 10);
}

TEST(WideThread, EndsWithoutEverHavingRun) { const WideThread wide; }

}  // namespace
}  // namespace tensord::engine
