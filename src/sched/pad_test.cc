// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/pad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "sched/testing/sched_fixtures.h"

namespace tensord::sched {
namespace {

using ::testing::ElementsAre;

// Pads these; what was made stays in `keeps`.
std::vector<tensor::TensorView> Pad(const std::vector<OwnedViews>& pieces,
                                    std::vector<std::shared_ptr<const void>>* keeps) {
  std::vector<tensor::TensorView> views;
  for (const OwnedViews& piece : pieces) views.push_back(piece.tensors[0]);
  PadPieces(views, keeps);
  return views;
}

TEST(PadPieces, EachDimGrowsAtItsEndWithTheFirstElement) {
  std::vector<std::shared_ptr<const void>> keeps;
  const std::vector<OwnedViews> pieces = {Floats({1, 2, 2}, 10), Floats({2, 1, 3}, 20)};
  const auto padded = Pad(pieces, &keeps);
  EXPECT_EQ(padded[0].shape, (tensor::Shape{1, 2, 3}));
  EXPECT_THAT(FloatsOf(padded[0]), ElementsAre(10, 11, 10, 12, 13, 10));
  EXPECT_EQ(padded[1].shape, (tensor::Shape{2, 2, 3}));
  EXPECT_THAT(FloatsOf(padded[1]), ElementsAre(20, 21, 22, 20, 20, 20, 23, 24, 25, 20, 20, 20));
}

TEST(PadPieces, WhatFitsIsNotCopied) {
  std::vector<std::shared_ptr<const void>> keeps;
  const OwnedViews wide = Floats({1, 3}, 1);
  const std::vector<OwnedViews> pieces = {wide, Floats({1, 1}, 9)};
  const auto padded = Pad(pieces, &keeps);
  EXPECT_EQ(padded[0].bytes.data(), wide.tensors[0].bytes.data());
  EXPECT_EQ(keeps.size(), 1u);
}

TEST(PadPieces, StringsToo) {
  std::vector<std::shared_ptr<const void>> keeps;
  const std::vector<OwnedViews> pieces = {Strings({2, 1}, {"ab", ""}),
                                          Strings({1, 3}, {"x", "yy", "z"})};
  const auto padded = Pad(pieces, &keeps);
  EXPECT_THAT(StringsOf(padded[0]), ElementsAre("ab", "ab", "ab", "", "ab", "ab"));
  EXPECT_THAT(StringsOf(padded[1]), ElementsAre("x", "yy", "z"));
}

TEST(PadPieces, OnePaddedByHandForEveryRank) {
  std::vector<std::shared_ptr<const void>> keeps;
  for (int rank = 2; rank <= limits::kRankMax; ++rank) {
    std::vector<int64_t> small(static_cast<size_t>(rank), 1);
    std::vector<int64_t> large(static_cast<size_t>(rank), 2);
    large[0] = 1;
    const auto padded = Pad(
        {Floats(*tensor::Shape::Make(small), 5), Floats(*tensor::Shape::Make(large), 0)}, &keeps);
    EXPECT_EQ(padded[0].shape, padded[1].shape);
    EXPECT_THAT(FloatsOf(padded[0]), testing::Each(5.0F)) << rank;
  }
}

TEST(CanPad, NeedsRowsAndSomethingToPadWith) {
  EXPECT_TRUE(CanPad(Floats({2, 1}, 0).tensors));
  EXPECT_TRUE(CanPad(Floats({2}, 0).tensors));
  EXPECT_FALSE(CanPad(Floats({}, 0).tensors));
  EXPECT_FALSE(CanPad(Floats({2, 0}, 0).tensors));
}

size_t Prefix(const std::vector<OwnedViews>& calls) {
  std::vector<CallInputs> inputs;
  for (const OwnedViews& call : calls) inputs.emplace_back(call.tensors);
  return PaddedPrefix(inputs);
}

TEST(PaddedPrefix, EndsBeforeTheCallThatWouldCostTooMuch) {
  const OwnedViews small = Floats({1, 1, 1}, 0);
  const OwnedViews wide = Floats({1, 1, 1 << 13}, 0);
  const OwnedViews high = Floats({1, 1 << 13, 1}, 0);
  EXPECT_EQ(Prefix({small, wide, small}), 3u);
  EXPECT_EQ(Prefix({small, wide, high, small}), 2u);
  EXPECT_EQ(Prefix({wide}), 1u);
  const OwnedViews large = Floats({1, 1 << 20}, 0);  // 4 MiB each, and nothing is padded.
  EXPECT_EQ(Prefix(std::vector<OwnedViews>(40, large)), 40u);
  const OwnedViews lengthy = Strings({1, 1}, {std::string(1 << 20, 'x')});
  const OwnedViews many = Strings({1, 100}, std::vector<std::string>(100));
  EXPECT_EQ(Prefix({many, lengthy}), 1u) << "each of the hundred would be as long";
}

}  // namespace
}  // namespace tensord::sched
