// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/segment_demand.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace tensord::fleet {
namespace {

constexpr uint64_t kMib = 1 << 20;
constexpr SegmentSizes kStandard = {4 * kMib, 2 * kMib};
constexpr int kRuns = 4;

class SegmentDemandTest : public testing::Test {
 protected:
  void NoteOwn(int runs, uint64_t request_bytes, uint64_t response_bytes = 100) {
    for (int i = 0; i < runs; ++i) demand_.Note(request_bytes, response_bytes, true, now_);
  }

  absl::Time now_ = absl::UnixEpoch();
  SegmentDemand demand_{kStandard, kRuns, now_};
};

TEST_F(SegmentDemandTest, RunsThatFitChangeNothing) {
  for (int i = 0; i < 1000; ++i) demand_.Note(600'000, 1000, false, now_);
  EXPECT_EQ(demand_.Wanted(kStandard, now_), std::nullopt);
}

TEST_F(SegmentDemandTest, AFewLargeRunsChangeNothing) {
  NoteOwn(limits::kOwnRunsBeforeGrowth - 1, 2 * kMib);
  EXPECT_EQ(demand_.Wanted(kStandard, now_), std::nullopt);
}

TEST_F(SegmentDemandTest, ManyLargeRunsGetRoomForAllThatCanBeOut) {
  NoteOwn(limits::kOwnRunsBeforeGrowth, 2 * kMib - 64);
  EXPECT_EQ(demand_.Wanted(kStandard, now_), (SegmentSizes{kRuns * 2 * kMib, 2 * kMib}));
}

TEST_F(SegmentDemandTest, LargeOutputsGrowTheOtherSegment) {
  NoteOwn(limits::kOwnRunsBeforeGrowth, 100, 3 * kMib - 64);
  EXPECT_EQ(demand_.Wanted(kStandard, now_), (SegmentSizes{4 * kMib, kRuns * 3 * kMib}));
}

TEST_F(SegmentDemandTest, WhatIsTooLargeForAnyStandardSegmentKeepsItsOwn) {
  NoteOwn(1000, limits::kGrownSegmentBytesMax / 2);
  EXPECT_EQ(demand_.Wanted(kStandard, now_), std::nullopt);
}

TEST_F(SegmentDemandTest, OnceGrownItIsEnough) {
  NoteOwn(limits::kOwnRunsBeforeGrowth, 2 * kMib);
  const auto grown = demand_.Wanted(kStandard, now_);
  ASSERT_TRUE(grown.has_value());
  demand_.Reset(now_);
  for (int i = 0; i < 1000; ++i) demand_.Note(2 * kMib, 100, false, now_);
  EXPECT_EQ(demand_.Wanted(*grown, now_), std::nullopt);
}

TEST_F(SegmentDemandTest, ItShrinksWhenNothingLargeCameForLong) {
  NoteOwn(limits::kOwnRunsBeforeGrowth, 2 * kMib);
  const auto grown = demand_.Wanted(kStandard, now_);
  ASSERT_TRUE(grown.has_value());
  demand_.Reset(now_);
  now_ += limits::kGrownSegmentsIdle;
  demand_.Note(100, 100, false, now_);
  EXPECT_EQ(demand_.Wanted(*grown, now_), std::nullopt) << "the large ones were not long ago";
  now_ += limits::kGrownSegmentsIdle;
  demand_.Note(100, 100, false, now_);
  EXPECT_EQ(demand_.Wanted(*grown, now_), kStandard);
}

TEST_F(SegmentDemandTest, ItShrinksWhenNothingCameAtAll) {
  NoteOwn(limits::kOwnRunsBeforeGrowth, 2 * kMib);
  const auto grown = demand_.Wanted(kStandard, now_);
  ASSERT_TRUE(grown.has_value());
  demand_.Reset(now_);
  now_ += 2 * limits::kGrownSegmentsIdle;
  EXPECT_EQ(demand_.Wanted(*grown, now_), kStandard);
}

}  // namespace
}  // namespace tensord::fleet
