// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/grade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tensord::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr ActKind kKinds[] = {ActKind::kReadFile, ActKind::kWriteFile, ActKind::kNetwork,
                              ActKind::kProcess, ActKind::kKernel};

// All that a worker can have.
Observed Everything() {
  Observed observed{.no_new_privileges = true,
                    .resource_limits = true,
                    .own_user = true,
                    .own_network = true,
                    .landlock_abi = 6,
                    .attempts = {}};
  for (const ActKind kind : kKinds) {
    observed.attempts.push_back({.act = "act", .refused = true, .seen = "EPERM", .kind = kind});
  }
  return observed;
}

// And the same with acts of these kinds possible.
Observed Open(const std::vector<ActKind>& kinds) {
  Observed observed = Everything();
  for (Attempt& attempt : observed.attempts) {
    for (const ActKind kind : kinds) attempt.refused = attempt.refused && attempt.kind != kind;
  }
  return observed;
}

TEST(GradeOf, AHasAllLayers) { EXPECT_EQ(GradeOf(Everything()), "A"); }

TEST(GradeOf, BHasLandlockAndSeccompButSharesAUserOrTheNetwork) {
  Observed shared = Everything();
  shared.own_user = false;
  EXPECT_EQ(GradeOf(shared), "B");
  shared = Everything();
  shared.own_network = false;
  EXPECT_EQ(GradeOf(shared), "B");
  shared = Everything();
  shared.landlock_abi = 5;
  EXPECT_EQ(GradeOf(shared), "B");
}

TEST(GradeOf, CLacksOneOfTheTwo) {
  EXPECT_EQ(GradeOf(Open({ActKind::kReadFile})), "C");
  for (const ActKind kind : {ActKind::kNetwork, ActKind::kProcess, ActKind::kKernel}) {
    EXPECT_EQ(GradeOf(Open({kind})), "C");
  }
  Observed limitless = Everything();
  limitless.resource_limits = false;
  EXPECT_EQ(GradeOf(limitless), "C");
}

TEST(GradeOf, DLacksBothOrTriedNothing) {
  EXPECT_EQ(GradeOf(Open({ActKind::kReadFile, ActKind::kKernel})), "D");
  EXPECT_EQ(GradeOf(Observed()), "D");
}

TEST(MissingOf, NothingIsMissingWhereEveryActIsRefusedWhoeverTheUserIs) {
  Observed shared = Everything();
  shared.own_user = shared.own_network = false;
  shared.landlock_abi = 1;
  EXPECT_EQ(MissingOf(shared, false), "");
}

TEST(MissingOf, FilesThatCanBeReadMayBeAccepted) {
  EXPECT_THAT(MissingOf(Open({ActKind::kReadFile}), false),
              HasSubstr("can be read, which --accept_weak_sandbox=files accepts (act: EPERM)"));
  EXPECT_EQ(MissingOf(Open({ActKind::kReadFile}), true), "");
}

TEST(MissingOf, TheRestMayNot) {
  for (const ActKind kind :
       {ActKind::kWriteFile, ActKind::kNetwork, ActKind::kProcess, ActKind::kKernel}) {
    EXPECT_NE(MissingOf(Open({kind}), true), "");
  }
  Observed observed = Open({ActKind::kNetwork, ActKind::kWriteFile});
  observed.no_new_privileges = false;
  observed.resource_limits = false;
  const std::string all = MissingOf(observed, true);
  for (const char* what : {"no_new_privs", "limits", "network", "written"}) {
    EXPECT_THAT(all, HasSubstr(what));
  }
  EXPECT_THAT(all, Not(HasSubstr("other processes")));
  EXPECT_THAT(MissingOf(Observed(), true), HasSubstr("nothing was tried"));
}

}  // namespace
}  // namespace tensord::worker
