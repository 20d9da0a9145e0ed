// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tensord::serve {

// The proportional set size of a process in bytes, from /proc/<pid>/smaps_rollup. Empty when the
// kernel does not let us read it (a process of another user that is not dumpable) or it is gone.
std::optional<uint64_t> PssBytes(int pid);

// The "Pss:" line of such a file. Pure.
std::optional<uint64_t> ParsePss(std::string_view smaps_rollup);

}  // namespace tensord::serve
