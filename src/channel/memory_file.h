// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

// Files that exist in memory alone, and can be sealed: nobody changes then what was handed over.
namespace tensord::channel {

// What errno says, of shared memory: RESOURCE_EXHAUSTED when it is short, else FAILED_PRECONDITION.
absl::Status MemoryError(const char* what);

struct MemoryFile {
  base::UniqueFd fd;
  int seals = 0;  // That it was born with.
};

// One of that size whose pages exist already: a full machine says so here, not by SIGBUS later.
absl::StatusOr<MemoryFile> MakeMemoryFile(const char* name, uint64_t bytes);

// Adds `seals` (F_SEAL_...), then the seal that ends sealing, and looks whether all are there: a
// failed add sets none of them.
absl::Status Seal(const MemoryFile& memory, int seals);

// ---- A text for another process -----------------------------------------------------------------

// A file with these bytes that can never change. REQUIRES: `bytes` is not empty.
absl::StatusOr<base::UniqueFd> SealBytes(const char* name, std::string_view bytes);

// Whether it is one of those, and no larger. INVALID_ARGUMENT says what it is instead.
absl::Status CheckSealed(int fd, uint64_t bytes_max);

// Its bytes, after that check, wherever its file offset stands.
absl::StatusOr<std::string> ReadSealed(int fd, uint64_t bytes_max);

}  // namespace tensord::channel
