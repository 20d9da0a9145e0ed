// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tensord::supervisor {

// What the system lets a process have (`ulimit`); the largest number: as much as there is.
struct ProcessLimits {
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  uint64_t files = kNone;        // Open at a time; the hard limit, as a front raises itself to it.
  uint64_t file_bytes = kNone;   // Of one file; shared memory counts as one.
  uint64_t processes = kNone;    // Of the user, each thread one; none of root's.
  uint64_t stack_bytes = kNone;  // Of one thread.
  uint64_t address_bytes = kNone;  // Of one process.
};

// Of this process.
ProcessLimits OwnLimits();

// A sentence for each limit that a server is likely to meet: number, consequence, what to do. Pure.
std::vector<std::string> LowLimits(const ProcessLimits& limits, bool root);

}  // namespace tensord::supervisor
