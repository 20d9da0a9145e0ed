// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tensord::supervisor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Children, AreReadFromTheKernelsList) {
  EXPECT_THAT(PidsInList("12 345 \n"), ElementsAre(12, 345));
  EXPECT_THAT(PidsInList("7"), ElementsAre(7));
  EXPECT_THAT(PidsInList(""), IsEmpty());
  EXPECT_THAT(PidsInList("x -1 0  "), IsEmpty());
}

TEST(Children, AreToldByTheirParentWhateverTheirName) {
  EXPECT_EQ(ParentInStat("12 (cat) S 34 12 1"), 34);
  EXPECT_EQ(ParentInStat("12 (a) R 1 (b)) S 35 12 1"), 35);
  for (const char* text : {"", "12", "12 (cat)", "12 (cat) S", "12 (cat) S x 1"}) {
    EXPECT_EQ(ParentInStat(text), 0) << text;
  }
}

TEST(Children, AreOursUntilTheyAreReaped) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_THAT(Children(), Contains(child));
  EXPECT_TRUE(IsChild(child));
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(IsChild(child));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(IsChild(child));
  EXPECT_THAT(Children(), Not(Contains(child)));
}

TEST(Children, DoNotIncludeStrangers) {
  EXPECT_FALSE(IsChild(getpid()));
  EXPECT_FALSE(IsChild(1));
  EXPECT_FALSE(IsChild(0));
  EXPECT_FALSE(IsChild(-1));
}

}  // namespace
}  // namespace tensord::supervisor
