// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Requests that are received where their worker reads them.

#include <algorithm>
#include <span>

#include "base/limits.h"
#include "fleet/testing/worker_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

using ReceivedTest = WorkerFixture;

// The floats 1, 2, 3 … in the place, from its byte `at`.
std::span<const float> Fill(const ReceivePlace& place, size_t at, size_t count) {
  const std::span<float> floats(reinterpret_cast<float*>(place.memory.data() + at), count);
  for (size_t i = 0; i < count; ++i) floats[i] = static_cast<float>(i + 1);
  return floats;
}

TEST_F(ReceivedTest, ARunReadsWhatLiesThereAlready) {
  StartLoaded();
  ReceivePlace place = handle_->LeaseForReceive(1000);
  ASSERT_THAT(place.memory, SizeIs(1000));
  Asked* const asked = AskTwiceAt(Fill(place, 128, 3));
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  EXPECT_EQ(handle_->CopiedBytes(), 0u);
  process_->SayAnswers({process_->Answer(run)});
  Turn();
  EXPECT_THAT(FloatsOf(*asked), ElementsAre(2, 4, 6));
  EXPECT_EQ(handle_->slots_out(), 1u) << "the lease is still held";
  place = {};
  EXPECT_EQ(handle_->slots_out(), 0u);
}

TEST_F(ReceivedTest, WhatLiesAskewIsCopied) {
  StartLoaded();
  const ReceivePlace place = handle_->LeaseForReceive(1000);
  Asked* const asked = AskTwiceAt(Fill(place, 4, 3));
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  EXPECT_EQ(run.inputs[0].offset % 64, 0u);
  EXPECT_EQ(handle_->CopiedBytes(), 64u);
  process_->SayAnswers({process_->Answer(run)});
  Turn();
  EXPECT_THAT(FloatsOf(*asked), ElementsAre(2, 4, 6));
}

TEST_F(ReceivedTest, TheMemoryStaysWhileARunReadsIt) {
  StartLoaded();
  ReceivePlace place = handle_->LeaseForReceive(1000);
  Asked* const asked = AskTwiceAt(Fill(place, 0, 3));
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  place = {};  // The caller was answered at its deadline.
  EXPECT_EQ(handle_->slots_out(), 2u);
  process_->SayAnswers({process_->Answer(run)});
  Turn();
  EXPECT_THAT(FloatsOf(*asked), ElementsAre(2, 4, 6));
  EXPECT_EQ(handle_->slots_out(), 0u);
}

TEST_F(ReceivedTest, ThereIsAPlaceForEachIdleExecutorAndNoMore) {
  StartLoaded(2);
  const ReceivePlace first = handle_->LeaseForReceive(1000);
  ReceivePlace second = handle_->LeaseForReceive(1000);
  EXPECT_FALSE(first.memory.empty());
  EXPECT_FALSE(second.memory.empty());
  EXPECT_TRUE(handle_->LeaseForReceive(1000).memory.empty());
  second = {};
  AskTwice({1});
  EXPECT_TRUE(handle_->LeaseForReceive(1000).memory.empty()) << "one runs, one is received";
  AskTwiceAt(Fill(first, 0, 3));
  EXPECT_TRUE(handle_->LeaseForReceive(1000).memory.empty()) << "both run";
  Turn();
  for (const channel::Run& run : process_->HearRuns()) {
    process_->SayAnswers({process_->Answer(run)});
  }
  Turn();
  EXPECT_FALSE(handle_->LeaseForReceive(1000).memory.empty());
}

TEST_F(ReceivedTest, WhatIsLargerThanTheSegmentFindsNoPlace) {
  StartLoaded();
  EXPECT_TRUE(handle_->LeaseForReceive(100'000).memory.empty());
  EXPECT_EQ(handle_->slots_out(), 0u);
}

TEST_F(ReceivedTest, AWorkerThatIsNotReadyHasNoPlace) {
  Start();
  EXPECT_TRUE(handle_->LeaseForReceive(1000).memory.empty());
}

TEST_F(ReceivedTest, APlaceOutlivesItsWorker) {
  StartLoaded();
  const ReceivePlace place = handle_->LeaseForReceive(1000);
  const std::span<const float> values = Fill(place, 0, 3);
  Asked* const asked = AskTwiceAt(values);
  Turn();
  process_->Close();
  Turn();
  handle_.reset();
  EXPECT_TRUE(asked->outcome.worker_lost);
  EXPECT_THAT(values, ElementsAre(1, 2, 3)) << "for another worker";

  loads_ = 0;
  StartLoaded();
  Asked* const again = AskTwiceAt(values);
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  EXPECT_EQ(handle_->CopiedBytes(), 64u) << "it lies in no segment of this one";
  process_->SayAnswers({process_->Answer(run)});
  Turn();
  EXPECT_THAT(FloatsOf(*again), ElementsAre(2, 4, 6));
}

TEST_F(ReceivedTest, APlaceInASegmentThatWasReplacedIsCopiedFrom) {
  StartLoaded();
  const ReceivePlace place = handle_->LeaseForReceive(1000);
  const std::span<const float> values = Fill(place, 0, 3);
  const std::vector<float> large(100'000);
  for (int i = 0; handle_->Free() > 0 && i < limits::kOwnRunsBeforeGrowth; ++i) AnswerLarge(large);
  process_->TakeSegments();
  Turn();
  const uint64_t copied = handle_->CopiedBytes();
  Asked* const asked = AskTwiceAt(values);
  Turn();
  const channel::Run run = process_->HearRuns().at(0);
  EXPECT_EQ(handle_->CopiedBytes(), copied + 64);
  process_->SayAnswers({process_->Answer(run)});
  Turn();
  EXPECT_THAT(FloatsOf(*asked), ElementsAre(2, 4, 6));
}

TEST_F(ReceivedTest, WhatTheRuntimeKeepsIsNeverGivenOutAgain) {
  StartLoaded();
  ReceivePlace place = handle_->LeaseForReceive(1000);
  const std::byte* const kept = place.memory.data();
  AskTwiceAt(Fill(place, 0, 3));
  Turn();
  channel::Completion answer = process_->Answer(process_->HearRuns().at(0));
  answer.inputs_retained = true;
  process_->SayAnswers({answer});
  Turn();
  place = {};
  std::vector<ReceivePlace> places;
  for (int i = 0; i < 10; ++i) {
    ReceivePlace next = handle_->LeaseForReceive(64);
    if (next.memory.empty()) break;
    EXPECT_TRUE(next.memory.data() < kept || next.memory.data() >= kept + 1000);
    AskTwiceAt(Fill(next, 0, 3));
    places.push_back(std::move(next));
    Turn();
    process_->SayAnswers({process_->Answer(process_->HearRuns().at(0))});
    Turn();
  }
  EXPECT_THAT(places, SizeIs(10));
}

}  // namespace
}  // namespace tensord::fleet
