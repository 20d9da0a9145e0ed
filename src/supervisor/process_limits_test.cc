// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/process_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tensord::supervisor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LowLimits, WithoutLimitsThereIsNothingToSay) { EXPECT_THAT(LowLimits({}, false), IsEmpty()); }

TEST(LowLimits, EachOneIsNamedWithItsNumberAndItsLetter) {
  const ProcessLimits low{.files = 20,
                          .file_bytes = 0,
                          .processes = 30,
                          .stack_bytes = 65536,
                          .address_bytes = 1 << 30};
  EXPECT_THAT(LowLimits(low, false),
              ElementsAre(AllOf(HasSubstr("20"), HasSubstr("ulimit -n")),
                          AllOf(HasSubstr(": 0,"), HasSubstr("ulimit -f")),
                          AllOf(HasSubstr("30"), HasSubstr("ulimit -u")),
                          AllOf(HasSubstr("65536"), HasSubstr("ulimit -s")),
                          AllOf(HasSubstr("1073741824"), HasSubstr("ulimit -v"))));
}

TEST(LowLimits, RootMayHaveAsManyProcessesAsThereAre) {
  EXPECT_THAT(LowLimits({.processes = 1}, true), IsEmpty());
  EXPECT_EQ(LowLimits({.processes = 1}, false).size(), 1u);
}

}  // namespace
}  // namespace tensord::supervisor
