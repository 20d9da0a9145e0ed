// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace tensord::front {

// TFRecord files under one name prefix: PREFIX-20261130T071230-PID-NUMBER.tfrecord, with ".partial"
// behind it until the file is complete, so that a reader who takes *.tfrecord finds whole files
// only. A file is complete at kRecordFileBytesMax, or at kRecordFileAgeMax; the oldest go when
// there are more than kRecordFilesKept. Threads: one; its calls wait for the disk.
class RecordFile {
 public:
  explicit RecordFile(std::string prefix) : prefix_(std::move(prefix)) {}
  ~RecordFile() { Complete(); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // UNAVAILABLE, naming the file, when that cannot be written; nothing of the record is then in a
  // complete file. `wall` names new files, `now` tells their age.
  absl::Status Append(std::string_view record, absl::Time wall, absl::Time now);
  // Gives the open file its name; nothing when none is open.
  void Complete();
  void CompleteIfOld(absl::Time now);
  const std::string& prefix() const { return prefix_; }

 private:
  absl::Status Open(absl::Time wall, absl::Time now);
  absl::Status Fail(std::string_view what);
  void DropOldest() const;

  const std::string prefix_;
  base::UniqueFd file_;
  std::string name_;  // Of the open file, when it will be complete.
  uint64_t bytes_ = 0;
  absl::Time opened_;
  int number_ = 0;
};

}  // namespace tensord::front
