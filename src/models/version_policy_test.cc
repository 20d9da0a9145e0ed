// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/version_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tensord::models {
namespace {

using Kind = VersionPolicy::Kind;
using Numbers = std::vector<int64_t>;
constexpr size_t kAll = std::numeric_limits<size_t>::max();

struct ChooseRow {
  std::string name;
  VersionPolicy policy;
  std::vector<Candidate> candidates;
  std::set<int64_t> labelled;
  Numbers wanted;
};

VersionPolicy Latest(uint32_t n) { return {.kind = Kind::kLatest, .latest = n, .specific = {}}; }
VersionPolicy Specific(Numbers numbers) {
  return {.kind = Kind::kSpecific, .specific = std::move(numbers)};
}
const VersionPolicy kEach = {.kind = Kind::kAll, .specific = {}};

class ChooseTest : public testing::TestWithParam<ChooseRow> {};

TEST_P(ChooseTest, PicksTheVersionsThatShouldLive) {
  const ChooseRow& row = GetParam();
  EXPECT_EQ(Choose(row.policy, row.candidates, row.labelled), row.wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ChooseTest,
    testing::Values(ChooseRow{"NothingExists", Latest(1), {}, {}, {}},
                    ChooseRow{"LatestIsTheHighest", Latest(1), {{3}, {2}, {1}}, {}, {3}},
                    ChooseRow{"ZeroCountsAsOne", Latest(0), {{3}, {2}}, {}, {3}},
                    ChooseRow{"LatestTwo", Latest(2), {{3}, {2}, {1}}, {}, {3, 2}},
                    ChooseRow{"LatestOfFewerThanAskedFor", Latest(5), {{2}, {1}}, {}, {2, 1}},
                    ChooseRow{
                        "AFailedOneGivesItsPlaceToTheNext", Latest(1), {{3, true}, {2}}, {}, {2}},
                    ChooseRow{"AllFailed", Latest(1), {{3, true}, {2, true}}, {}, {}},
                    ChooseRow{"ALabelledOneIsWantedToo", Latest(1), {{3}, {2}, {1}}, {1}, {3, 1}},
                    ChooseRow{"ALabelOnWhatDoesNotExist", Latest(1), {{3}}, {7}, {3}},
                    ChooseRow{"All", kEach, {{3}, {2, true}, {1}}, {}, {3, 1}},
                    ChooseRow{"Specific", Specific({1, 3, 9}), {{3}, {2}, {1}}, {}, {3, 1}},
                    ChooseRow{"SpecificIgnoresLabels", Specific({1}), {{3}, {2}, {1}}, {3}, {1}},
                    ChooseRow{"SpecificThatFailed", Specific({3}), {{3, true}, {2}}, {}, {}},
                    ChooseRow{"NoneSpecific", Specific({}), {{3}, {2}}, {}, {}}),
    [](const auto& row) { return row.param.name; });

struct KeepRow {
  std::string name;
  VersionPolicy policy;
  size_t wanted;
  size_t available;
  size_t keep;
};

class SubstitutesTest : public testing::TestWithParam<KeepRow> {};

TEST_P(SubstitutesTest, SaysHowManyOldVersionsStay) {
  const KeepRow& row = GetParam();
  EXPECT_EQ(Substitutes(row.policy, row.wanted, row.available), row.keep);
}

INSTANTIATE_TEST_SUITE_P(Rows, SubstitutesTest,
                         testing::Values(KeepRow{"TheNewOneIsNotUp", Latest(1), 1, 0, 1},
                                         KeepRow{"TheNewOneIsUp", Latest(1), 1, 1, 0},
                                         KeepRow{"OneOfTwoIsUp", Latest(2), 2, 1, 1},
                                         KeepRow{"NothingCouldTakeOver", Latest(1), 0, 0, kAll},
                                         KeepRow{"NothingCouldTakeOverForAll", kEach, 0, 0, kAll},
                                         KeepRow{"OneOfTwoNamedIsUp", Specific({1, 2}), 2, 1, 0},
                                         KeepRow{"NoneNamedIsUp", Specific({1}), 1, 0, 1},
                                         KeepRow{"NoneIsNamed", Specific({}), 0, 0, 0}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tensord::models
