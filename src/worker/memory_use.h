// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string_view>

namespace tensord::worker {

// Private_Clean + Private_Dirty of a /proc/PID/smaps_rollup, in bytes; 0 when it says neither.
uint64_t ParsePrivateBytes(std::string_view smaps_rollup);

// Of this process now; 0 when the kernel does not tell.
uint64_t PrivateBytes();

}  // namespace tensord::worker
