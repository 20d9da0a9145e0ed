// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

// CHECK ends the process on a bug of ours, with file, line and the broken condition on stderr.
// Never for what a client, a file or a worker can cause: that is an absl::Status.

namespace tensord::base {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace tensord::base

#define TENSORD_CHECK(condition)                                    \
  do {                                                              \
    if (!(condition)) [[unlikely]] {                                \
      ::tensord::base::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                               \
  } while (false)
