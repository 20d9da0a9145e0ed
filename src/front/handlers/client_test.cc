// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/client.h"

#include <gtest/gtest.h>

#include "base/sched_limits.h"

namespace tensord::front {
namespace {

RequestHead From(std::string peer) {
  RequestHead head;
  head.peer = std::move(peer);
  return head;
}

TEST(ClientOf, AnAddressIsAClientWhateverItsPort) {
  EXPECT_EQ(ClientOf(From("10.0.0.1:4000")), ClientOf(From("10.0.0.1:4001")));
  EXPECT_NE(ClientOf(From("10.0.0.1:4000")), ClientOf(From("10.0.0.2:4000")));
  EXPECT_NE(ClientOf(From("[::1]:4000")), ClientOf(From("[::2]:4000")));
  EXPECT_LT(ClientOf(From("unix")), limits::kClientBuckets);
}

}  // namespace
}  // namespace tensord::front
