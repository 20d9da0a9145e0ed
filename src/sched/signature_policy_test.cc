// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/signature_policy.h"

#include <gtest/gtest.h>

#include "base/sched_limits.h"
#include "sched/testing/sched_fixtures.h"

namespace tensord::sched {
namespace {

absl::Duration Line(absl::Duration fixed, absl::Duration per_row, int64_t rows) {
  return fixed + rows * per_row;
}

// As a warm-up leaves it: sizes up to 64 were timed.
SignaturePolicy Warm(const QueueOptions& options, absl::Duration fixed, absl::Duration per_row) {
  SignaturePolicy policy(options, OpenSignature());
  for (int64_t rows = 1; rows <= options.rows_max; rows *= 2) {
    policy.Seed({.rows = rows, .time = Line(fixed, per_row, rows)});
  }
  return policy;
}

TEST(SignaturePolicy, BatchesOfShortRunsMayHaveMoreRowsThanOthers) {
  struct Row {
    const char* what;
    absl::Duration fixed, per_row;
    int64_t cap;
  };
  const Row rows[] = {
      {"a small MLP", absl::Microseconds(11), absl::Nanoseconds(450), 256},
      {"256 rows would take too long", absl::Milliseconds(1), absl::Microseconds(20), 128},
      {"128 would", absl::Milliseconds(4), absl::Microseconds(250), 64},
      {"nothing to gain beyond 54", absl::Microseconds(50), absl::Microseconds(30), 54},
      {"a CNN", absl::Microseconds(200), absl::Milliseconds(20), 1},
  };
  for (const Row& row : rows) {
    const QueueOptions grows{.rows_may_grow = true};
    EXPECT_EQ(Warm(grows, row.fixed, row.per_row).RowsCap(), row.cap) << row.what;
    const QueueOptions stays;
    EXPECT_LE(Warm(stays, row.fixed, row.per_row).RowsCap(), 64) << row.what;
    const QueueOptions set{.rows_max = 16};
    EXPECT_LE(Warm(set, row.fixed, row.per_row).RowsCap(), 16) << row.what;
  }
}

TEST(SignaturePolicy, ABatchThatProvesLongIsNotMadeAgain) {
  const QueueOptions options{.rows_may_grow = true};
  SignaturePolicy policy = Warm(options, absl::Microseconds(11), absl::Nanoseconds(450));
  ASSERT_EQ(policy.RowsCap(), 256);
  for (int i = 0; i < 10; ++i) policy.Learn(256, absl::Milliseconds(20));  // Beyond the caches.
  EXPECT_LE(policy.RowsCap(), 128);
}

TEST(SignaturePolicy, NothingGrowsBeforeRunTimesAreKnown) {
  const QueueOptions options{.rows_may_grow = true};
  SignaturePolicy policy(options, OpenSignature());
  EXPECT_EQ(policy.RowsCap(), 64);
  for (int i = 0; i < 200; ++i) {
    EXPECT_LE(policy.Limits().rows_max, 64) << "one size says nothing of larger ones";
    policy.Learn(64, absl::Microseconds(40));
  }
}

}  // namespace
}  // namespace tensord::sched
