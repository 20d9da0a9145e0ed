// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <set>
#include <string_view>

namespace tensord::supervisor {

// The children of this process, zombies included: from /proc/self/task/<tid>/children, or on
// kernels without it from all of /proc. Another process may be adopted while this looks.
std::set<pid_t> Children();

// The parent's pid in /proc/<pid>/stat, whose second field may hold any bytes; 0 when it is not
// there.
pid_t ParentInStat(std::string_view stat);
// The pids in /proc/<pid>/task/<tid>/children.
std::set<pid_t> PidsInList(std::string_view text);

// Whether `pid` is a child of ours that was not reaped yet. Its number cannot belong to another
// process until then.
bool IsChild(pid_t pid);

}  // namespace tensord::supervisor
