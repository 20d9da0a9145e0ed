// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/limits.h"
#include "tensor/shape.h"
#include "wire/json/cursor.h"
#include "wire/json/element_writer.h"

namespace tensord::wire {

// Reads one leaf or one nest of lists as a dense tensor: the first list of each level sets that
// level's size, all others must agree.
// The cursor stands at the value; afterwards it stands behind it.
class ListReader {
 public:
  // kAll: the value's text was checked before. kNestsStrictly: it was not, if it is a list; only a
  // regular nest of plain numbers is read then, and all else is refused without good words.
  enum class Take : uint8_t { kAll, kNestsStrictly };

  ListReader(JsonCursor* cursor, ElementWriter* writer, Take take)
      : cursor_(*cursor), writer_(*writer), take_(take) {}

  // INVALID_ARGUMENT (UNIMPLEMENTED for dtypes without a JSON form) in the original's words.
  absl::StatusOr<tensor::Shape> Read();
  // The value was a list that was read strictly.
  bool was_nest() const { return was_nest_; }
  // Where an error is: "[2][0]".
  std::string path() const;
  // Leaves read. Those beyond the writer's room are counted and dropped: the caller knows by the
  // count that the value is too large.
  uint64_t elements() const { return elements_; }

 private:
  absl::Status OpenList();
  absl::Status CloseList();
  absl::Status AddLeaf();
  absl::Status LeafError() const;
  absl::Status SizeError(int level, uint64_t size) const;
  absl::Status OpenListsError() const;

  JsonCursor& cursor_;
  ElementWriter& writer_;
  const Take take_;
  bool was_nest_ = false;
  uint64_t elements_ = 0;
  int level_ = 0;                                    // Open lists.
  int rank_ = -1;                                    // Unknown before the first leaf.
  std::array<int64_t, limits::kRankMax> dims_{};     // Each level's size, where known.
  std::array<bool, limits::kRankMax> known_{};       // The level's first list has closed.
  std::array<uint64_t, limits::kRankMax> counts_{};  // Values so far in each open list.
};

}  // namespace tensord::wire
