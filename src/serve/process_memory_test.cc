// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/process_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tensord::serve {
namespace {

TEST(ProcessMemory, PssIsReadFromItsOwnLine) {
  EXPECT_EQ(
      ParsePss("55-7f ---p 0 00:00 0 [rollup]\nRss:  9000 kB\nPss:   1234 kB\nPss_Anon: 7 kB\n"),
      1234u * 1024);
  EXPECT_EQ(ParsePss("55-7f ---p [rollup]\nRss: 1 kB\n"), std::nullopt);
  EXPECT_EQ(ParsePss("x\nPss:"), std::nullopt);
}

TEST(ProcessMemory, OurOwnProcessHasSome) {
  EXPECT_GT(PssBytes(getpid()).value_or(0), 100'000u);
  EXPECT_EQ(PssBytes(0), std::nullopt);
}

}  // namespace
}  // namespace tensord::serve
