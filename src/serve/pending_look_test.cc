// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/pending_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "obs/log_lines.h"

namespace tensord::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PendingLookTest : public testing::Test {
 protected:
  PendingLookTest() {
    obs::SendLinesTo([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~PendingLookTest() override { obs::SendLinesTo(nullptr); }

  std::vector<std::string> lines_;
  PendingLook look_{"access", "--access_rules_file=/rules"};
};

TEST_F(PendingLookTest, LooksThatEndAreNotSpokenOf) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(look_.Begin());
    look_.End();
  }
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(PendingLookTest, OneThatDoesNotEndIsToldOnceAndSoIsItsEnd) {
  EXPECT_TRUE(look_.Begin());
  EXPECT_FALSE(look_.Begin());
  EXPECT_FALSE(look_.Begin());
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("access: reading --access_rules_file=/rules takes")));
  look_.End();
  EXPECT_THAT(lines_, ElementsAre(testing::_, HasSubstr("can be read again")));
  EXPECT_TRUE(look_.Begin());
}

}  // namespace
}  // namespace tensord::serve
