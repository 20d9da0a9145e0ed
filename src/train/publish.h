// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tensord::train {

// Copies the SavedModel in `from` into `model_dir`, a server's folder of versions, as the next
// version, and gives its path. A server sees it whole or not at all: the copy is made under a name
// that is no version, written through to the disk, compared byte for byte, and then renamed.
// FAILED_PRECONDITION names the file when `from` is no complete SavedModel.
// RESOURCE_EXHAUSTED where the folder has the largest version there can be.
absl::StatusOr<std::string> Publish(const std::string& from, const std::string& model_dir);

// What tells one export at a place from the next one there. Nothing where there is none.
struct ExportMark {
  ino_t file = 0;
  int64_t changed_ns = 0;  // CLOCK_REALTIME of whoever keeps the files.

  bool operator==(const ExportMark&) const = default;
};
ExportMark MarkOf(const std::string& folder);

// Whether `from` and `model_dir` can be what they are meant to be: neither inside the other.
absl::Status CheckPlaces(const std::string& from, const std::string& model_dir);

// DATA_LOSS names the first file of the folder `from` that is not the same in the folder `to`, byte
// for byte. REQUIRES: what `to` holds is on the disk, or may be read from memory as well.
absl::Status CompareFolders(const std::string& from, const std::string& to);

}  // namespace tensord::train
