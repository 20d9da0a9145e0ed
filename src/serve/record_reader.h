// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tensord::serve {

// Reads a TFRecord file piece by piece, so that never more than a piece is in memory.
// Threads: one at a time. Every call may block as long as the file system does.
class RecordReader {
 public:
  // NOT_FOUND when there is none, INVALID_ARGUMENT for what is no regular file.
  static absl::StatusOr<RecordReader> Open(const std::string& path);

  struct Piece {
    std::vector<std::string> records;  // In order.
    bool end = false;                  // Nothing comes after these.
    // DATA_LOSS when what follows the records is none; INVALID_ARGUMENT when the next is larger
    // than kWarmUpRecordBytesMax. Either is the end: what stands behind it cannot be trusted.
    absl::Status status;
  };
  // Some more records: about kPieceBytes of them, one at least unless it is the end.
  Piece Next();

 private:
  static constexpr size_t kPieceBytes = 1 << 20;

  explicit RecordReader(base::UniqueFd file) : file_(std::move(file)) {}
  absl::Status ReadOne(std::string* record, bool* end);
  absl::StatusOr<size_t> ReadAt(uint64_t offset, size_t bytes, std::string* out) const;

  base::UniqueFd file_;
  uint64_t offset_ = 0;
  uint64_t records_ = 0;
};

}  // namespace tensord::serve
