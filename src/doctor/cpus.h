// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <set>
#include <string>

#include "doctor/machine.h"

namespace tensord::doctor {

// The processors as the kernel's files describe them.
struct Cpus {
  std::string name;
  std::set<std::string, std::less<>> flags;  // Of /proc/cpuinfo.
  int online = 1;
  int cores = 0;              // Physical ones; 0: not known.
  int numa_nodes = 1;         // With CPUs.
  int affinity = 1;           // CPUs that this process may run on.
  std::optional<int> cgroup;  // Of quota and cpuset, rounded up; empty: no limit.

  bool Has(std::string_view flag) const { return flags.contains(flag); }
  bool smt() const { return cores > 0 && online > cores; }
  // CPUs that may be busy at once.
  int usable() const;
  // Whether the runtime uses oneDNN without being told.
  bool OnednnByDefault() const;
};

Cpus ReadCpus(const Machine& machine);

}  // namespace tensord::doctor
