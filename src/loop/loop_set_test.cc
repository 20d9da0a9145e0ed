// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "loop/loop_set.h"

#include <gtest/gtest.h>

#include <array>

namespace tensord::loop {
namespace {

TEST(LoopSet, ATaskRunsOnceOnEachLoopAndThenTheControlLoopHears) {
  auto loops = *LoopSet::Create(3);
  std::array<std::thread::id, 3> ran{};
  bool after = false;
  PostOrDie(loops->control(), [&] {
    loops->OnEach([&](int i) { ran[static_cast<size_t>(i)] = std::this_thread::get_id(); },
                  [&] {
                    after = true;
                    loops->Stop();
                  });
  });
  loops->Run();
  EXPECT_TRUE(after);
  EXPECT_EQ(ran[0], std::this_thread::get_id());
  EXPECT_NE(ran[1], ran[0]);
  EXPECT_NE(ran[2], ran[1]);
}

}  // namespace
}  // namespace tensord::loop
