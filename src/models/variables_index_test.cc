// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/variables_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "models/testing/saved_model_files.h"

namespace tensord::models {
namespace {

using testing::ElementsAre;

TEST(ShardBytes, IsTheEndOfTheLastVariableOfEachShard) {
  const std::string index = MakeIndex(2, {{.name = "a", .shard = 0, .offset = 0, .size = 40},
                                          {.name = "ab", .shard = 1, .offset = 8, .size = 4},
                                          {.name = "b", .shard = 0, .offset = 40, .size = 60}});
  const auto bytes = ShardBytes(index);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_THAT(*bytes, ElementsAre(100, 12));
}

TEST(ShardBytes, OfNoVariablesIsNothing) {
  const auto bytes = ShardBytes(MakeIndex(1, {}));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_THAT(*bytes, ElementsAre(0));
}

TEST(ShardBytes, CutAnywhereIsDataLoss) {
  const std::string index = MakeIndex(1, {{.name = "a", .shard = 0, .offset = 0, .size = 40}});
  for (size_t bytes = 0; bytes < index.size(); ++bytes) {
    EXPECT_EQ(ShardBytes(std::string_view(index).substr(0, bytes)).status().code(),
              absl::StatusCode::kDataLoss)
        << bytes;
  }
}

TEST(ShardBytes, OfCompressedBlocksIsUnimplemented) {
  std::string index = MakeIndex(1, {});
  index[FirstBlockTrailer(index)] = 1;
  EXPECT_EQ(ShardBytes(index).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ShardBytes, TakesAnyBytes) {
  const std::string index = MakeIndex(2, {{.name = "a", .shard = 0, .offset = 0, .size = 40},
                                          {.name = "b", .shard = 1, .offset = 1, .size = 4}});
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string broken = index;
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips) {
      broken[random() % broken.size()] = static_cast<char>(random());
    }
    const auto bytes = ShardBytes(broken);  // Must return, whatever it says.
    if (bytes.ok()) {
      EXPECT_LE(bytes->size(), 100'000);
    }
  }
}

}  // namespace
}  // namespace tensord::models
