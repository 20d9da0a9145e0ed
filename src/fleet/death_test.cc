// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/death.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/text.h"

namespace tensord::fleet {
namespace {

using ::testing::HasSubstr;

TEST(DescribeLastWords, NamesTheSignal) {
  EXPECT_EQ(DescribeLastWords({.signal = SIGSEGV}), " (SIGSEGV)");
  EXPECT_EQ(DescribeLastWords({}), "");
  // A worker may write any number; only the filter's signal makes it a system call.
  EXPECT_EQ(DescribeLastWords({.signal = SIGABRT, .system_call = SYS_socket}), " (SIGABRT)");
}

TEST(DescribeLastWords, NamesTheSystemCallThatTheSandboxForbids) {
  EXPECT_THAT(DescribeLastWords({.signal = SIGSYS, .system_call = SYS_socket}),
              HasSubstr(base::Cat(" (SIGSYS), because the model called socket (system call ",
                                  SYS_socket, "), which its sandbox forbids")));
  EXPECT_THAT(DescribeForbidden({.signal = SIGSYS, .system_call = 123456}),
              HasSubstr("the model called system call 123456, which"));
  EXPECT_EQ(DescribeForbidden({.signal = SIGSYS}), "");
  EXPECT_EQ(DescribeForbidden({.signal = SIGSYS, .system_call = -7}), "");
}

}  // namespace
}  // namespace tensord::fleet
