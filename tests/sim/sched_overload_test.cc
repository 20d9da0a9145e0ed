// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Goodput under overload, with deadlines of 100 ms. Beside ours TensorFlow Serving's rule: a queue
// of at most so many batches, first come first served, a batch dropped only if all of it has
// expired.

#include <gtest/gtest.h>

#include <cstdio>

#include "base/text.h"
#include "overload.h"

namespace tensord::sched {
namespace {

void Print(const char* who, const char* load, const Outcome& outcome) {
  std::printf("%-8s %-22s goodput %.3f  admitted met %.4f  p50 %5.1f ms  p99 %5.1f ms\n", who, load,
              outcome.goodput, outcome.admitted_met, absl::ToDoubleMilliseconds(outcome.p50),
              absl::ToDoubleMilliseconds(outcome.p99));
}

TEST(Overload, OursKeepsItsCapacityWhereTheirsLosesIt) {
  struct Row {
    const char* what;
    double share;
    double ours_least, theirs_most;
  };
  const Row rows[] = {
      {"0.8x", 0.8, 0.78, 1}, {"1.0x", 1.0, 0.95, 0.95}, {"1.3x", 1.3, 0.95, 0.1},
      {"2x", 2.0, 0.95, 0.1}, {"5x", 5.0, 0.95, 0.1},
  };
  for (const Row& row : rows) {
    const Outcome ours = OurServer({.share = row.share}).Run();
    const Outcome theirs = TheirServer({.share = row.share}, 100);
    Print("tensord", row.what, ours);
    Print("original", row.what, theirs);
    EXPECT_GE(ours.goodput, row.ours_least) << row.what;
    EXPECT_LE(theirs.goodput, row.theirs_most) << row.what;
    EXPECT_GE(ours.admitted_met, 0.99) << row.what;
  }
}

TEST(Overload, HardlyAnythingIsRunForNobody) {
  for (const double share : {2.0, 5.0, 10.0}) {
    const Outcome ours = OurServer({.share = share, .noise = 0.1}).Run();
    std::printf("tensord  %4.0fx                  wasted %.4f of the run time\n", share,
                ours.wasted);
    EXPECT_LT(ours.wasted, 0.01) << share;
  }
}

TEST(Overload, AllIsAsBeforeSoonAfterIt) {
  const Outcome quiet = OurServer({.share = 0.5, .counted_from = kSpan / 2}).Run();
  for (const double share : {2.0, 10.0}) {
    const Outcome after = OurServer({.share = share,
                                     .share_then = 0.5,
                                     .counted_from = kSpan / 2 + absl::Milliseconds(200)})
                              .Run();
    Print("tensord", base::Cat("0.5x after ", share, "x").c_str(), after);
    EXPECT_EQ(after.met, 1) << share;
    EXPECT_LE(after.p99, 1.2 * quiet.p99) << share;
  }
}

TEST(Overload, MixedDeadlinesAreAllServed) {
  const Load load{.share = 2,
                  .deadlines = {absl::Milliseconds(50), absl::Milliseconds(200), absl::Seconds(1)}};
  const Outcome ours = OurServer(load).Run();
  Print("tensord", "2x, 50/200/1000 ms", ours);
  Print("original", "2x, 50/200/1000 ms", TheirServer(load, 10));
  EXPECT_GE(ours.goodput, 0.93);
}

TEST(Overload, NoisyRunTimesCostLittle) {
  struct Row {
    const char* what;
    Load load;
    double goodput_least, met_least, wasted_most;
  };
  const std::vector<absl::Duration> mixed = {absl::Milliseconds(50), absl::Milliseconds(200),
                                             absl::Seconds(1)};
  const Row rows[] = {
      {"0.8x, noise 0.3", {.share = 0.8, .noise = 0.3}, 0.79, 0.999, 0.002},
      {"1.0x, noise 0.3", {.share = 1, .noise = 0.3}, 0.95, 0.99, 0.005},
      {"2x, noise 0.2", {.share = 2, .noise = 0.2}, 0.97, 0.99, 0.01},
      {"2x, noise 0.3", {.share = 2, .noise = 0.3}, 0.97, 0.97, 0.02},
      {"2x, noise 0.3, mixed", {.share = 2, .deadlines = mixed, .noise = 0.3}, 0.97, 0.935, 0.02},
      {"2x, noise 0.5", {.share = 2, .noise = 0.5}, 0.95, 0.92, 0.05},
  };
  for (const Row& row : rows) {
    const Outcome ours = OurServer(row.load).Run();
    Print("tensord", row.what, ours);
    EXPECT_GE(ours.goodput, row.goodput_least) << row.what;
    EXPECT_GE(ours.admitted_met, row.met_least) << row.what;
    EXPECT_LE(ours.wasted, row.wasted_most) << row.what;
  }
}

TEST(Overload, RetryingClientsDoNotMakeItWorse) {
  const Outcome ours = OurServer({.share = 2, .retries = true}).Run();
  Print("tensord", "2x, retrying clients", ours);
  EXPECT_GE(ours.goodput, 0.95);
}

TEST(Overload, PatientCallsAreNeverRefusedByPrediction) {
  const Load load{.share = 1.3, .deadlines = {absl::Hours(1)}};
  const Outcome ours = OurServer(load).Run();
  Print("tensord", "1.3x, 1 h", ours);
  EXPECT_GE(ours.goodput, 1.25) << "the queue holds what the second after brings";
}

}  // namespace
}  // namespace tensord::sched
