// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/limits.h"

namespace tensord::serve {
namespace {

TEST(Descriptors, ConnectionsLeaveRoomForFilesAndWorkers) {
  EXPECT_EQ(ConnectionsMax(1024, 2), 256);
  EXPECT_EQ(ConnectionsMax(4096, 2), (4096 - 1024) / 2);
  EXPECT_EQ(ConnectionsMax(1 << 20, 3), limits::kConnectionsMax);
  EXPECT_EQ(ConnectionsMax(~uint64_t{0}, 1), limits::kConnectionsMax);
}

TEST(Descriptors, EvenATinyLimitAllowsOneConnection) {
  EXPECT_EQ(ConnectionsMax(2, 8), 1);
  EXPECT_EQ(ConnectionsMax(0, 0), 1);
}

TEST(Descriptors, TheLimitRisesToWhatTheSystemAllows) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const DescriptorLimit raised = RaiseDescriptorLimit();
  EXPECT_EQ(raised.before, 64u);
  EXPECT_EQ(raised.now, before.rlim_max);
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
}

}  // namespace
}  // namespace tensord::serve
