// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/run_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tensord::serve {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

RunTimeBook Book() {
  return {
      {{"m", 3, "serving_default"}, {{1, absl::Milliseconds(2)}, {8, absl::Microseconds(12'345)}}},
      {{"odd\tname %\n", 1, ""}, {{1, absl::Nanoseconds(1)}}}};
}

tensor::SignatureList Signatures() {
  tensor::SignatureList list(2);
  list[0].name = "other";
  list[1].name = "serving_default";
  return list;
}

TEST(RunTimes, ComeBackAsTheyWere) { EXPECT_EQ(ParseRunTimes(PrintRunTimes(Book())), Book()); }

TEST(RunTimes, LinesThatAreNoneAreLeftOut) {
  const std::string text = PrintRunTimes(Book());
  EXPECT_THAT(ParseRunTimes("something else\n" + text), IsEmpty());
  EXPECT_THAT(ParseRunTimes(""), IsEmpty());
  EXPECT_EQ(
      ParseRunTimes(text + "nonsense\n1\t2\t3\n1\t2\tx\ta\tb\n1\t2\t3\t%\tb\n1\t2\t3\t%zz\tb\n"),
      Book());
  for (size_t cut = 0; cut < text.size(); ++cut) ParseRunTimes(text.substr(0, cut));
}

TEST(HintsFor, WhatWasLearntIsHeardAfterWhatWasMeasured) {
  const std::vector<sched::RunTimeHint> measured = {{1, 1, absl::Milliseconds(1)},
                                                    {0, 1, absl::Seconds(9)}};
  const auto hints = HintsFor(Book(), "m", 3, Signatures(), measured);
  ASSERT_THAT(hints, SizeIs(4));
  EXPECT_EQ(hints[2].signature, 1);
  EXPECT_EQ(hints[2].rows, 1);
  EXPECT_EQ(hints[2].time, absl::Milliseconds(2));
  EXPECT_THAT(HintsFor(Book(), "m", 4, Signatures(), measured), SizeIs(2));
  EXPECT_THAT(HintsFor(Book(), "n", 3, Signatures(), {}), IsEmpty());
}

TEST(HintsFor, ABookAboutAnotherMachineIsNotBelieved) {
  for (const absl::Duration now : {absl::Microseconds(100), absl::Milliseconds(50)}) {
    const std::vector<sched::RunTimeHint> measured = {{1, 1, now}};
    EXPECT_THAT(HintsFor(Book(), "m", 3, Signatures(), measured), SizeIs(1));
  }
}

TEST(RunTimesFile, IsReplacedWholeAndMayBeMissing) {
  const std::string directory = ::testing::TempDir() + "/run_times_test";
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(WriteRunTimes(directory, Book()).ok());
  std::filesystem::create_directory(directory);
  EXPECT_THAT(ReadRunTimes(directory), IsEmpty());
  ASSERT_TRUE(WriteRunTimes(directory, {}).ok());
  ASSERT_TRUE(WriteRunTimes(directory, Book()).ok());
  EXPECT_EQ(ReadRunTimes(directory), Book());
  std::ofstream(directory + "/run_times") << std::string(10 << 20, 'x');
  EXPECT_THAT(ReadRunTimes(directory), IsEmpty());
}

}  // namespace
}  // namespace tensord::serve
