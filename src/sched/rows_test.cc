// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sched/testing/sched_fixtures.h"

namespace tensord::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RowCutter, FixedWidthSlicesAreViewsOfTheBatch) {
  const OwnedViews batch = Floats({3, 2}, 1);
  const auto cutter = RowCutter::Open(batch.tensors, batch.keep, 3);
  ASSERT_TRUE(cutter.ok());
  const OwnedViews cut = cutter->Cut(1, 2);
  EXPECT_EQ(cut.tensors[0].shape, (tensor::Shape{2, 2}));
  EXPECT_THAT(FloatsOf(cut.tensors[0]), ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(cut.tensors[0].bytes.data(), batch.tensors[0].bytes.data() + 8);
  EXPECT_EQ(cut.keep, batch.keep);
}

TEST(RowCutter, MixesStringsAndNumbersAndOutlivesTheBatch) {
  OwnedViews batch = Floats({2, 1}, 1);
  const OwnedViews strings = Strings({2, 2}, {"a", "b", "", "dd"});
  batch.tensors.push_back(strings.tensors[0]);
  OwnedViews cut;
  {
    const auto cutter = RowCutter::Open(batch.tensors, batch.keep, 2);
    ASSERT_TRUE(cutter.ok());
    cut = cutter->Cut(1, 1);
  }
  batch.keep.reset();
  EXPECT_THAT(FloatsOf(cut.tensors[0]), ElementsAre(2));
  EXPECT_THAT(StringsOf(cut.tensors[1]), ElementsAre("", "dd"));
}

TEST(RowCutter, RowsOfNoElementsHaveNoBytes) {
  const OwnedViews batch = Floats({2, 0}, 1);
  const auto cutter = RowCutter::Open(batch.tensors, batch.keep, 2);
  ASSERT_TRUE(cutter.ok());
  EXPECT_THAT(FloatsOf(cutter->Cut(1, 1).tensors[0]), IsEmpty());
}

TEST(RowCutter, RefusesTensorsThatHaveNotThoseRows) {
  const auto open = [](const OwnedViews& batch, int64_t rows) {
    return RowCutter::Open(batch.tensors, batch.keep, rows).status();
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(open(Floats({}, 1), 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(open(Floats({3, 1}, 1), 2)));
  OwnedViews cheat = Floats({2, 2}, 1);
  cheat.tensors[0].bytes = cheat.tensors[0].bytes.first(12);
  EXPECT_TRUE(absl::IsInternal(open(cheat, 2)));
  cheat = Strings({2}, {"a", "b"});
  cheat.tensors[0].bytes = cheat.tensors[0].bytes.first(25);
  EXPECT_TRUE(absl::IsInternal(open(cheat, 2)));
}

TEST(JoinRows, UndoesCutting) {
  OwnedViews batch = Floats({4, 2}, 1);
  const OwnedViews strings = Strings({4}, {"a", "", "ccc", "d"});
  batch.tensors.push_back(strings.tensors[0]);
  const auto cutter = RowCutter::Open(batch.tensors, batch.keep, 4);
  ASSERT_TRUE(cutter.ok());
  const std::vector<OwnedViews> pieces = {cutter->Cut(0, 1), cutter->Cut(1, 3)};
  const auto joined = JoinRows(pieces);
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined->tensors[0].shape, batch.tensors[0].shape);
  EXPECT_EQ(FloatsOf(joined->tensors[0]), FloatsOf(batch.tensors[0]));
  EXPECT_THAT(StringsOf(joined->tensors[1]), ElementsAre("a", "", "ccc", "d"));
}

TEST(JoinRows, RefusesPiecesThatDiffer) {
  const std::vector<OwnedViews> shapes = {Floats({1, 2}, 1), Floats({1, 3}, 1)};
  EXPECT_TRUE(absl::IsFailedPrecondition(JoinRows(shapes).status()));
  const std::vector<OwnedViews> scalars = {Floats({}, 1), Floats({}, 1)};
  EXPECT_TRUE(absl::IsFailedPrecondition(JoinRows(scalars).status()));
}

}  // namespace
}  // namespace tensord::sched
