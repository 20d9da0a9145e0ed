// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/small_file.h"

#include <gtest/gtest.h>

namespace tensord::base {
namespace {

TEST(SmallFile, IsWhatTheKernelSaysOfUs) {
  EXPECT_NE(SmallFile("/proc/self/stat").find("(base_test)"), std::string::npos);
}

TEST(SmallFile, IsEmptyWhereReadingFails) {
  EXPECT_EQ(SmallFile("/proc/0/stat"), "");
  EXPECT_EQ(SmallFile("/proc/self"), "") << "it opens, but cannot be read";
}

}  // namespace
}  // namespace tensord::base
