// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/server_options.h"

// How much of the machine is ours: a container sees all CPUs and all memory, and may use fewer.
namespace tensord::config {

// CPUs that this process may use at once: the affinity mask, which a cpuset narrows too, and the
// quota of every cgroup we are in (v1, v2 or both mounted), rounded up. At least 1.
int CpuBudget();

// The same in cores: hardware threads that share one (SMT) count once. As many threads as one run
// should spread over; more only get in each other's way.
int CoreBudget();

// Bytes that we may use: the machine's memory or the lowest limit of our cgroups.
uint64_t MemoryBudget();

// --loops, or one up to 4 CPUs and one more for each 8.
int LoopCount(const ServerOptions& options, int cpus);
// --memory_limit_bytes, or what MemoryBudget gave.
uint64_t MemoryLimit(const ServerOptions& options, uint64_t budget);
// --request_bytes_budget, or a quarter of the limit.
uint64_t RequestBytesBudget(const ServerOptions& options, uint64_t memory_limit);

// ---- Parts, on the texts of files; for tests ----------------------------------------------------

// CPUs of cgroup v2's cpu.max, "max 100000" or "150000 100000", rounded up. Empty: no limit, or
// not such a text.
std::optional<int> CpusOfMax(std::string_view text);
// The same for v1's cpu.cfs_quota_us (-1: no limit) and cpu.cfs_period_us.
std::optional<int> CpusOfQuota(std::string_view quota, std::string_view period);
// CPUs in a list such as cpuset.cpus.effective has: "0-3,7". Empty: not such a text.
std::optional<int> CpusOfList(std::string_view text);
// Bytes of memory.max or memory.limit_in_bytes. v1 says "none" by a huge number.
std::optional<uint64_t> BytesOfLimit(std::string_view text);
// The cgroup path of a controller in /proc/self/cgroup: v1 by its name, v2 with "". Empty when the
// controller has no line there.
std::optional<std::string> CgroupPath(std::string_view proc_self_cgroup,
                                      std::string_view controller);
// Total bytes in /proc/meminfo.
std::optional<uint64_t> BytesOfMeminfo(std::string_view text);

// Where the files are; tests bring a directory of their own.
struct BudgetFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
  std::string cpus = "/sys/devices/system/cpu";
};
// Cores that these CPUs belong to. One whose siblings cannot be read counts as a core.
int CoresOf(const BudgetFiles& files, const std::vector<int>& cpus);
// The lowest limit from our cgroup up to its root; empty when there is none. Inside a container
// /proc/self/cgroup may name a path that only the host has: then the root is what we see of ours.
std::optional<int> CgroupCpus(const BudgetFiles& files);
std::optional<uint64_t> CgroupBytes(const BudgetFiles& files);

}  // namespace tensord::config
