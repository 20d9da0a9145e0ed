// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/client.h"

#include <gtest/gtest.h>

#include "base/sched_limits.h"

namespace tensord::front {
namespace {

RequestHead From(std::string peer, std::string_view identity = "") {
  RequestHead head;
  head.peer = std::move(peer);
  if (!identity.empty()) head.headers = {{"x-client", identity}};
  return head;
}

TEST(ClientOf, AnAddressIsAClientWhateverItsPort) {
  EXPECT_EQ(ClientOf(From("10.0.0.1:4000"), ""), ClientOf(From("10.0.0.1:4001"), ""));
  EXPECT_NE(ClientOf(From("10.0.0.1:4000"), ""), ClientOf(From("10.0.0.2:4000"), ""));
  EXPECT_NE(ClientOf(From("[::1]:4000"), ""), ClientOf(From("[::2]:4000"), ""));
  EXPECT_LT(ClientOf(From("unix"), ""), limits::kClientBuckets);
}

TEST(ClientOf, TheOperatorsHeaderNamesItWhereThereIsOne) {
  EXPECT_EQ(ClientOf(From("10.0.0.1:1", "a"), "x-client"),
            ClientOf(From("10.0.0.2:1", "a"), "x-client"));
  EXPECT_NE(ClientOf(From("10.0.0.1:1", "a"), "x-client"),
            ClientOf(From("10.0.0.1:1", "b"), "x-client"));
  EXPECT_EQ(ClientOf(From("10.0.0.1:1"), "x-client"), ClientOf(From("10.0.0.1:2"), ""));
  EXPECT_EQ(ClientOf(From("10.0.0.1:1", "a"), ""), ClientOf(From("10.0.0.1:1", "b"), ""))
      << "a header that no operator named says nothing";
}

}  // namespace
}  // namespace tensord::front
