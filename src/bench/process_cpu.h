// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace tensord::bench {

// CPU time by role of a server's process tree: "supervisor" (the root), "front", "zygote",
// "worker", or the program's name for any other. Ended processes are not in it.
using CpuByRole = std::map<std::string, absl::Duration>;

// Reads /proc/PID/stat of `root` and all its descendants (and what was reparented to it).
CpuByRole CpuOfTree(int root);

// What was used between two readings; roles that are in the later one only count from zero.
CpuByRole Used(const CpuByRole& before, const CpuByRole& after);

// utime + stime and the parent's pid, from the text of a /proc/PID/stat. Pure; `ticks_per_second`
// is sysconf(_SC_CLK_TCK).
struct ProcessStat {
  int parent = 0;
  absl::Duration cpu;
};
std::optional<ProcessStat> ParseStat(std::string_view stat, long ticks_per_second);

}  // namespace tensord::bench
