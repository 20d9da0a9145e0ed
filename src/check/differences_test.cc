// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "check/differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/option_table.h"

namespace tensord::check {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kHead = "# T\n\n## REST\n\n| what | a | b | why |\n|---|---|---|---|\n";

TEST(ParseDifferences, ReadsRowsOfFourCells) {
  const auto rows = ParseDifferences(
      base::Cat(kHead, "| v | x y | z | w |\n", "## B\n", kHead.substr(13), "| b | b | b | b |\n"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_THAT(*rows, SizeIs(2));
  EXPECT_EQ(rows->front().area, "REST");
  EXPECT_EQ(rows->front().what, "v");
  EXPECT_EQ(rows->front().original, "x y");
  EXPECT_EQ(rows->back().area, "B");
  EXPECT_EQ(rows->front().ours, "z");
  EXPECT_EQ(rows->front().why, "w");
  EXPECT_FALSE(ParseDifferences(base::Cat(kHead, "| a | b | c |\n")).ok());
  EXPECT_FALSE(ParseDifferences(base::Cat(kHead, "| a | b |  | d |\n")).ok());
}

TEST(DifferencesPage, IsATableThatTheProgramCanRead) {
  const auto rows = ParseDifferences(kDifferencesPage);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_GT(rows->size(), 40u);
}

// What stands behind each mark, up to a character that is none of a name.
std::vector<std::string> NamesBehind(std::string_view mark, std::string_view characters) {
  std::vector<std::string> names;
  for (size_t at = kDifferencesPage.find(mark); at != std::string_view::npos;
       at = kDifferencesPage.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    const size_t end = kDifferencesPage.find_first_not_of(characters, begin);
    if (end > begin) names.emplace_back(kDifferencesPage.substr(begin, end - begin));
  }
  return names;
}

TEST(DifferencesPage, NamesOnlyFlagsAndPagesThatExist) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  for (const std::string& flag : NamesBehind("`--", kLetters)) {
    EXPECT_NE(config::FindOption(flag), nullptr) << flag;
  }
  for (const std::string& page : NamesBehind("](", base::Cat(kLetters, "./"))) {
    EXPECT_TRUE(std::filesystem::exists(base::Cat(TENSORD_SOURCE_DIR, "/docs/", page))) << page;
  }
}

// What the rows say of the start is what CheckOptions and the supervisor do: `tensord serve` may
// have one port for both, and the original's name waits for all models.
TEST(DifferencesFor, SaysOfTheStartWhatHappens) {
  const std::vector<Difference> rows = DifferencesFor({.rest = true, .labels = true});
  const auto ours = [&rows](std::string_view what) {
    const auto row = std::ranges::find(rows, what, &Difference::what);
    return row == rows.end() ? "there is no such row" : row->ours;
  };
  EXPECT_THAT(ours("REST on the port of gRPC"), HasSubstr("`tensord serve` serves both"));
  EXPECT_THAT(ours("Loading: one bad model or path"),
              AllOf(HasSubstr("`tensorflow_model_server` waits for all models"),
                    HasSubstr("`tensord serve` serves the others")));
}

TEST(DifferencesFor, LeavesOutWhatDoesNotConcernADeployment) {
  std::vector<std::string> left_out;
  std::vector<Difference> page = *ParseDifferences(kDifferencesPage);
  const std::vector<Difference> all = DifferencesFor({.rest = true, .labels = true});
  for (const Difference& row : page) {
    const bool there = std::ranges::any_of(all, [&](const Difference& other) {
      return other.area == row.area && other.what == row.what;
    });
    if (!there) left_out.push_back(row.area);
  }
  // Which is about another server than the one that is replaced.
  EXPECT_THAT(left_out, AllOf(Not(IsEmpty()), Each("Open Inference Protocol")));
  for (const Difference& row : DifferencesFor({})) EXPECT_NE(row.area, "REST");
}

}  // namespace
}  // namespace tensord::check
