// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tensord::base {
namespace {

TEST(Utf8, ReplacesEveryByteThatIsNot) {
  EXPECT_EQ(ToUtf8("aä€😀"), "aä€😀");
  EXPECT_EQ(ToUtf8("\xff"
                   "a\xc3"),
            "?a?");
  EXPECT_EQ(ToUtf8("\xc0\x80"), "??") << "overlong";
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), "???") << "a surrogate";
  EXPECT_EQ(ToUtf8("\xf4\x90\x80\x80"), "????") << "above U+10FFFF";
  EXPECT_EQ(ToUtf8("\xe0\x80\x80"), "???") << "overlong";
  EXPECT_EQ(ToUtf8("\xf0\x9f\x98"), "???") << "cut";
}

}  // namespace
}  // namespace tensord::base
