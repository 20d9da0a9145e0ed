// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "base/text.h"
#include "config/cpu_budget.h"
#include "doctor/checks/checks.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr uint64_t kGibibyte = 1ull << 30;
constexpr int64_t kMapsMin = 65530;  // The kernel's default; a GPU process makes tens of thousands.

uint64_t Of(const std::string& meminfo, std::string_view key) {
  return static_cast<uint64_t>(std::max<int64_t>(0, NumberOf(meminfo, key).value_or(0)));
}

Finding Size(const Machine& machine, const std::string& meminfo) {
  const uint64_t total = Of(meminfo, "MemTotal");
  const uint64_t available = Of(meminfo, "MemAvailable");
  const auto limit = config::CgroupBytes(
      {.proc = machine.root + "/proc", .cgroup = machine.root + "/sys/fs/cgroup"});
  const uint64_t usable = std::min(limit.value_or(total), total);
  Finding finding{
      .id = "memory.size",
      .seen = base::Cat(Bytes(usable),
                        limit.value_or(total) < total ? " by the cgroup's limit, of " : " of ",
                        Bytes(total), "; ", Bytes(available), " available now")};
  if (total == 0) {
    finding.level = Level::kWarning;
    finding.seen = "/proc/meminfo does not tell the memory's size";
  } else if (usable < 2 * kGibibyte) {
    finding.level = Level::kWarning;
    finding.why =
        "TensorFlow's libraries alone take some 300 MiB, a model two to three times its "
        "size while it is loaded";
    finding.action = "give it 2 GiB and more";
  } else if (available < usable / 10) {
    finding.level = Level::kWarning;
    finding.why = "less than a tenth is free: a load can end in the kernel's out-of-memory killer";
    finding.action = "stop what is not needed, or set --memory_limit_bytes";
  }
  return finding;
}

Finding Swap(const std::string& meminfo) {
  const uint64_t total = Of(meminfo, "SwapTotal");
  const uint64_t used = total - std::min(total, Of(meminfo, "SwapFree"));
  if (total == 0) return {.id = "memory.swap", .seen = "no swap: a full memory fails at once"};
  Finding finding{.id = "memory.swap",
                  .seen = base::Cat("swap ", Bytes(total), ", ", Bytes(used), " in use")};
  if (used > total / 10) {
    finding.level = Level::kWarning;
    finding.why =
        "a model whose weights were swapped out answers in seconds instead of "
        "milliseconds";
    finding.action = "free memory, then swapoff -a && swapon -a; or set vm.swappiness=1";
  }
  return finding;
}

Finding HugePages(const Machine& machine, const std::string& meminfo) {
  const std::string enabled = machine.ReadOr("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = enabled.find('[');
  const std::string mode(open == std::string::npos
                             ? "unknown"
                             : enabled.substr(open + 1, enabled.find(']') - open - 1));
  Finding finding{.id = "memory.huge_pages", .seen = base::Cat("transparent huge pages: ", mode)};
  const uint64_t reserved = Of(meminfo, "HugePages_Total") * Of(meminfo, "Hugepagesize");
  if (mode == "never") {
    finding.level = Level::kInfo;
    finding.why = "large weights cost more page-table look-ups";
    finding.action = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  if (reserved > kGibibyte) {
    finding.level = Level::kWarning;
    finding.seen += base::Cat("; ", Bytes(reserved), " reserved as huge pages");
    finding.why = "neither TensorFlow nor tensord uses reserved huge pages: that memory is lost";
    finding.action = "sysctl vm.nr_hugepages=0, unless another program needs them";
  }
  return finding;
}

Finding Overcommit(const Machine& machine) {
  const std::string mode(Trim(machine.ReadOr("/proc/sys/vm/overcommit_memory")));
  if (mode != "2") {
    return {.id = "memory.overcommit",
            .seen = base::Cat("vm.overcommit_memory=", mode.empty() ? "?" : mode)};
  }
  return {.id = "memory.overcommit",
          .level = Level::kWarning,
          .seen = "vm.overcommit_memory=2: what is reserved counts as used",
          .why =
              "TensorFlow reserves far more address space than it uses, CUDA most of all: loads "
              "fail although memory is free",
          .action = "sysctl vm.overcommit_memory=0"};
}

Finding Maps(const Machine& machine) {
  const int64_t maps = ToNumber(machine.ReadOr("/proc/sys/vm/max_map_count")).value_or(kMapsMin);
  if (maps >= kMapsMin) {
    return {.id = "memory.max_map_count", .seen = base::Cat("vm.max_map_count=", maps)};
  }
  return {.id = "memory.max_map_count",
          .level = Level::kWarning,
          .seen = base::Cat("vm.max_map_count=", maps, ", less than the kernel's default"),
          .why = "a process with a GPU makes tens of thousands of mappings",
          .action = "sysctl vm.max_map_count=262144"};
}

}  // namespace

Findings CheckMemory(const Machine& machine) {
  const std::string meminfo = machine.ReadOr("/proc/meminfo");
  return {Size(machine, meminfo), Swap(meminfo), HugePages(machine, meminfo), Overcommit(machine),
          Maps(machine)};
}

}  // namespace tensord::doctor
