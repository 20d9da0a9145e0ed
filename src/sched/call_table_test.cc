// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/call_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tensord::sched {
namespace {

CallEntry& AddCall(CallTable& table, int deadline_ms) {
  Call call;
  call.deadline = absl::UnixEpoch() + absl::Milliseconds(deadline_ms);
  CallEntry& entry = table.Add(std::move(call));
  entry.state = CallState::kQueued;
  return entry;
}

TEST(CallTable, IdsAreNeverUsedTwice) {
  CallTable table;
  std::set<CallId> ids;
  for (int i = 0; i < 100; ++i) {
    CallEntry& entry = AddCall(table, i);
    EXPECT_NE(entry.id, 0u);
    EXPECT_TRUE(ids.insert(entry.id).second);
    EXPECT_EQ(table.Find(entry.id), &entry);
    table.Remove(entry);
    EXPECT_EQ(table.Find(*ids.rbegin()), nullptr);
  }
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.Find(12345), nullptr);
}

// Adds, removals from anywhere and forgotten deadlines against a sorted set.
TEST(CallTable, AlwaysKnowsTheNextDeadline) {
  std::mt19937_64 random(7);
  CallTable table;
  std::multiset<absl::Time> expected;
  std::vector<CallId> live;
  for (int step = 0; step < 20'000; ++step) {
    if (live.empty() || random() % 100 < 52) {
      CallEntry& entry = AddCall(table, static_cast<int>(random() % 1000));
      expected.insert(entry.call.deadline);
      live.push_back(entry.id);
    } else {
      const size_t at = random() % live.size();
      CallEntry& entry = *table.Find(live[at]);
      expected.erase(expected.find(entry.call.deadline));
      if (random() % 2 == 0) table.ForgetDeadline(entry);
      table.Remove(entry);
      live.erase(live.begin() + static_cast<ptrdiff_t>(at));
    }
    ASSERT_EQ(table.size(), live.size());
    ASSERT_EQ(table.NextDeadline(), expected.empty() ? absl::InfiniteFuture() : *expected.begin());
    if (!expected.empty()) {
      ASSERT_EQ(table.NextToExpire().call.deadline, *expected.begin());
    }
  }
}

}  // namespace
}  // namespace tensord::sched
