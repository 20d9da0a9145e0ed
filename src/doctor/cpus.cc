// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/cpus.h"

#include <algorithm>

#include "base/text.h"
#include "config/cpu_budget.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

int PhysicalCores(const Machine& machine, int online) {
  std::set<std::string> groups;
  for (int cpu = 0; cpu < online; ++cpu) {
    const std::string siblings = machine.ReadOr(
        base::Cat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    if (siblings.empty()) return 0;
    groups.insert(siblings);
  }
  return static_cast<int>(groups.size());
}

int NumaNodes(const Machine& machine) {
  int nodes = 0;
  for (const std::string& name : machine.List("/sys/devices/system/node")) {
    if (!name.starts_with("node") || !ToNumber(name.substr(4)).has_value()) continue;
    const std::string cpus =
        machine.ReadOr(base::Cat("/sys/devices/system/node/", name, "/cpulist"));
    if (!ListOf(cpus).empty()) ++nodes;
  }
  return std::max(nodes, 1);
}

}  // namespace

int Cpus::usable() const { return std::max(1, std::min(affinity, cgroup.value_or(affinity))); }

bool Cpus::OnednnByDefault() const {
  for (const std::string_view flag : {"avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile"}) {
    if (Has(flag)) return true;
  }
  return false;
}

Cpus ReadCpus(const Machine& machine) {
  Cpus cpus;
  const std::string info = machine.ReadOr("/proc/cpuinfo");
  cpus.name = ValueOf(info, "model name");
  for (const std::string_view flag : Split(ValueOf(info, "flags"), " ")) cpus.flags.emplace(flag);
  const auto online = ListOf(machine.ReadOr("/sys/devices/system/cpu/online"));
  cpus.online = std::max(1, static_cast<int>(online.size()));
  cpus.cores = PhysicalCores(machine, cpus.online);
  cpus.numa_nodes = NumaNodes(machine);
  const std::string status = machine.ReadOr("/proc/self/status");
  const auto allowed = ListOf(ValueOf(status, "Cpus_allowed_list"));
  cpus.affinity = allowed.empty() ? cpus.online : static_cast<int>(allowed.size());
  cpus.cgroup = config::CgroupCpus(
      {.proc = machine.root + "/proc", .cgroup = machine.root + "/sys/fs/cgroup"});
  return cpus;
}

}  // namespace tensord::doctor
