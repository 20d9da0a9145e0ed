// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/admission.h"

#include <gtest/gtest.h>

namespace tensord::sched {
namespace {

using tensor::Criticality;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

constexpr Criticality kPlus = Criticality::kCriticalPlus;
constexpr Criticality kNormal = Criticality::kCritical;
constexpr Criticality kSheddablePlus = Criticality::kSheddablePlus;
constexpr Criticality kSheddable = Criticality::kSheddable;

TEST(Admit, DecidesByTable) {
  struct Row {
    const char* what;
    int64_t queued;  // Of 100.
    int wait_ms;     // Forecast until it starts; -1: none. The run takes 10 ms more.
    int left_ms;     // Until the deadline; the call arrives now.
    Criticality criticality;
    bool retry;
    Verdict verdict;
  };
  const Row rows[] = {
      {"an empty queue takes all", 0, 500, 20, kSheddable, true, Verdict::kAdmit},
      {"nothing known: only the queue counts", 99, -1, 1, kNormal, false, Verdict::kAdmit},
      {"no room", 100, -1, 1000, kPlus, false, Verdict::kFull},
      {"just in time", 10, 70, 100, kNormal, false, Verdict::kAdmit},
      {"inside the margin", 10, 85, 100, kNormal, false, Verdict::kLate},
      {"too late", 10, 200, 100, kPlus, false, Verdict::kLate},
      {"a retry with room", 50, -1, 1000, kNormal, true, Verdict::kAdmit},
      {"a retry under pressure", 51, -1, 1000, kNormal, true, Verdict::kShed},
      {"a retry with little time", 10, 60, 100, kNormal, true, Verdict::kShed},
      {"a most critical retry", 90, -1, 1000, kPlus, true, Verdict::kAdmit},
      {"sheddable with room", 50, -1, 1000, kSheddable, false, Verdict::kAdmit},
      {"sheddable under pressure", 51, -1, 1000, kSheddable, false, Verdict::kShed},
      {"sheddable plus with room", 75, -1, 1000, kSheddablePlus, false, Verdict::kAdmit},
      {"sheddable plus under pressure", 76, -1, 1000, kSheddablePlus, false, Verdict::kShed},
  };
  for (const Row& row : rows) {
    std::optional<Forecast> forecast;
    if (row.wait_ms >= 0) {
      forecast = {absl::Milliseconds(row.wait_ms), absl::Milliseconds(10)};
    }
    const Applicant call{.criticality = row.criticality,
                         .retry = row.retry,
                         .arrived = kNow,
                         .deadline = kNow + absl::Milliseconds(row.left_ms)};
    const Fullness queue{.calls = row.queued, .calls_max = 100, .bytes_max = 100};
    const Admission admission = Admit(call, queue, forecast, kNow);
    EXPECT_EQ(admission.verdict, row.verdict) << row.what;
    EXPECT_EQ(admission.retry_after > absl::ZeroDuration(), row.verdict != Verdict::kAdmit)
        << row.what;
  }
}

TEST(Admit, ClientsOverTheirShareLeaveAQuarterToTheOthers) {
  const auto verdict = [](int64_t queued, int wait_ms, bool over_share) {
    std::optional<Forecast> forecast;
    if (wait_ms >= 0) forecast = {absl::Milliseconds(wait_ms), absl::Milliseconds(40)};
    // 90 ms without the margin, 50 of them to wait in.
    const Applicant call{
        .over_share = over_share, .arrived = kNow, .deadline = kNow + absl::Milliseconds(100)};
    return Admit(call, {.calls = queued, .calls_max = 100, .bytes_max = 100}, forecast, kNow)
        .verdict;
  };
  EXPECT_EQ(verdict(75, -1, true), Verdict::kAdmit);
  EXPECT_EQ(verdict(76, -1, true), Verdict::kOverShare);
  EXPECT_EQ(verdict(76, -1, false), Verdict::kAdmit);
  EXPECT_EQ(verdict(10, 37, true), Verdict::kAdmit);
  EXPECT_EQ(verdict(10, 38, true), Verdict::kOverShare);
  EXPECT_EQ(verdict(10, 38, false), Verdict::kAdmit);
  EXPECT_EQ(verdict(10, 51, true), Verdict::kLate);
}

TEST(AdmitAtOnce, RefusesWhatEvenTheShortestOfRunsWouldBeLateForExceptForTrials) {
  struct Row {
    const char* what;
    int least_ms;  // -1: not known.
    int left_ms;
    bool idle;
    int tried_ms_ago;
    Verdict verdict;
    bool trial;
  };
  const Row rows[] = {
      {"nothing known", -1, 1, true, 0, Verdict::kAdmit, false},
      {"just in time", 100, 100, true, 0, Verdict::kAdmit, false},
      {"in time, perhaps, behind what runs", 100, 100, false, 0, Verdict::kAdmit, false},
      {"late", 101, 100, true, 0, Verdict::kLate, false},
      {"late, no trial yet", 101, 100, true, 1'000'000, Verdict::kAdmit, true},
      {"late, and a trial would have to wait", 101, 100, false, 1'000'000, Verdict::kLate, false},
      {"a trial within a second", 10, 5, true, 999, Verdict::kLate, false},
      {"a trial after a second", 10, 5, true, 1000, Verdict::kAdmit, true},
      {"long runs, a trial too soon", 200, 100, true, 1999, Verdict::kLate, false},
      {"long runs, a trial", 200, 100, true, 2000, Verdict::kAdmit, true},
  };
  for (const Row& row : rows) {
    Outlook outlook{.idle = row.idle, .trial_last = kNow - absl::Milliseconds(row.tried_ms_ago)};
    if (row.least_ms >= 0) outlook.least = absl::Milliseconds(row.least_ms);
    const Applicant call{.arrived = kNow, .deadline = kNow + absl::Milliseconds(row.left_ms)};
    const Admission admission = AdmitAtOnce(call, outlook, kNow);
    EXPECT_EQ(admission.verdict, row.verdict) << row.what;
    EXPECT_EQ(admission.trial, row.trial) << row.what;
    EXPECT_EQ(admission.retry_after > absl::ZeroDuration(), row.verdict != Verdict::kAdmit)
        << row.what;
  }
}

TEST(AdmitAtOnce, TheHintIsWhenTheNextTrialMayBe) {
  const Applicant call{.arrived = kNow, .deadline = kNow + absl::Milliseconds(100)};
  Outlook outlook{
      .least = absl::Milliseconds(200), .idle = true, .trial_last = kNow - absl::Milliseconds(500)};
  EXPECT_EQ(AdmitAtOnce(call, outlook, kNow).retry_after, absl::Milliseconds(1500));
  outlook = {.least = absl::Milliseconds(200)};
  EXPECT_EQ(AdmitAtOnce(call, outlook, kNow).retry_after, absl::Milliseconds(200))
      << "when an executor may be idle";
}

TEST(Admit, ThoseRefusedTogetherComeBackApart) {
  const auto after = [](uint64_t salt) {
    const Forecast forecast{absl::Milliseconds(200), absl::Milliseconds(10)};
    const Applicant call{.salt = salt, .arrived = kNow, .deadline = kNow + absl::Milliseconds(100)};
    return Admit(call, {.calls = 1, .calls_max = 9, .bytes_max = 9}, forecast, kNow).retry_after;
  };
  EXPECT_EQ(after(0), absl::Milliseconds(200));
  EXPECT_GT(after(1), after(0));
  EXPECT_LE(after(63), absl::Milliseconds(300));
}

TEST(Admit, CountsBytes) {
  const Fullness queue{.calls = 1, .calls_max = 100, .bytes = 60, .bytes_max = 100};
  EXPECT_EQ(Admit({.bytes = 40}, queue, std::nullopt, kNow).verdict, Verdict::kAdmit);
  EXPECT_EQ(Admit({.bytes = 41}, queue, std::nullopt, kNow).verdict, Verdict::kFull);
  // A call larger than the whole queue still has its turn.
  EXPECT_EQ(Admit({.bytes = 1000}, {.bytes_max = 100}, std::nullopt, kNow).verdict,
            Verdict::kAdmit);
}

TEST(CountBatches, FillsThemInOrder) {
  const auto count = [](std::vector<int64_t> rows) {
    std::vector<Pending> calls;
    for (const int64_t r : rows) calls.push_back({.rows = r});
    return CountBatches(calls, 4);
  };
  EXPECT_EQ(count({}), (OpenBatches{0, 0}));
  EXPECT_EQ(count({1, 3}), (OpenBatches{1, 0}));
  EXPECT_EQ(count({3, 3}), (OpenBatches{2, 1}));
  EXPECT_EQ(count({3, 3, 1, 1}), (OpenBatches{3, 3}));
}

}  // namespace
}  // namespace tensord::sched
