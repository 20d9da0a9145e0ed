// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/rest_route.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "wire/testing/golden.h"

namespace tensord::wire {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> Cells(std::string_view line) {
  std::vector<std::string> cells;
  while (true) {
    const size_t bar = std::min(line.find('|'), line.size());
    cells.emplace_back(Trim(line.substr(0, bar)));
    if (bar == line.size()) return cells;
    line.remove_prefix(bar + 1);
  }
}

std::string KindName(RestKind kind) {
  constexpr const char* kNames[] = {"predict",  "classify",  "regress", "list",   "status",
                                    "metadata", "preflight", "bad",     "outside"};
  return kNames[static_cast<size_t>(kind)];
}

TEST(RestRoute, EveryPathMeansWhatTheOriginalMakesOfIt) {
  const std::vector<std::string> lines = testing::ReadGoldenLines("rest_routes.txt");
  ASSERT_GT(lines.size(), 50u);
  for (const std::string& line : lines) {
    const std::vector<std::string> cells = Cells(line);
    ASSERT_GE(cells.size(), 4u) << line;
    const RestRoute route = ParseRestRoute(cells[0], cells[1]);
    EXPECT_EQ(KindName(route.kind), cells[2]) << line;
    if (cells[2] == "bad") {
      EXPECT_EQ(base::Message(route.error), cells[3]) << line;
      EXPECT_EQ(route.error.code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ASSERT_EQ(cells.size(), 6u) << line;
    EXPECT_TRUE(route.error.ok()) << line;
    EXPECT_EQ(route.model, cells[3]) << line;
    EXPECT_EQ(route.version.has_value() ? std::to_string(*route.version) : "", cells[4]) << line;
    EXPECT_EQ(route.label, cells[5]) << line;
  }
}

}  // namespace
}  // namespace tensord::wire
