// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/cpu_budget.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "base/text.h"

namespace tensord::config {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

std::optional<int64_t> Number(std::string_view text) {
  text = Trim(text);
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// Cuts off and returns what stands before the first `separator`, or all of it.
std::string_view Take(std::string_view* text, char separator) {
  const size_t at = text->find(separator);
  const std::string_view head = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + 1);
  return head;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<int> RoundedUp(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::min<int64_t>(quota / period + (quota % period != 0), 1 << 20));
}

// "/a/b" gives "/a/b", "/a" and "".
std::vector<std::string> UpToRoot(std::string path) {
  std::vector<std::string> paths;
  while (path.size() > 1) {
    paths.push_back(path);
    path.resize(path.rfind('/'));
  }
  paths.emplace_back();
  return paths;
}

// Calls `read` with the directory of our cgroup and of each one above it, in every hierarchy that
// may hold the controller, and keeps the lowest limit.
template <typename T, typename Read>
std::optional<T> Lowest(const BudgetFiles& files, std::string_view controller, const Read& read) {
  std::optional<T> lowest;
  const std::string groups = Contents(files.proc + "/self/cgroup");
  const auto look = [&](const std::string& mount, const std::optional<std::string>& group) {
    if (!group.has_value()) return;
    for (const std::string& path : UpToRoot(*group)) {
      const std::optional<T> limit = read(mount + path);
      if (limit.has_value()) lowest = std::min(lowest.value_or(*limit), *limit);
    }
  };
  look(files.cgroup, CgroupPath(groups, ""));
  look(base::Cat(files.cgroup, "/unified"), CgroupPath(groups, ""));
  look(base::Cat(files.cgroup, "/", controller), CgroupPath(groups, controller));
  return lowest;
}

std::vector<int> AffinityCpus() {
  std::vector<int> cpus;
  // As many as a mask of the common size holds; sched_getaffinity fails where the kernel has more.
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  } else {
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

int Budget(int cpus) {
  return std::max(1, std::min(cpus, CgroupCpus(BudgetFiles()).value_or(cpus)));
}

}  // namespace

std::optional<int> CpusOfMax(std::string_view text) {
  text = Trim(text);
  const std::optional<int64_t> quota = Number(Take(&text, ' '));
  const std::optional<int64_t> period = Number(text);
  if (!quota.has_value() || !period.has_value()) return std::nullopt;
  return RoundedUp(*quota, *period);
}

std::optional<int> CpusOfQuota(std::string_view quota, std::string_view period) {
  const std::optional<int64_t> numerator = Number(quota);
  const std::optional<int64_t> denominator = Number(period);
  if (!numerator.has_value() || !denominator.has_value()) return std::nullopt;
  return RoundedUp(*numerator, *denominator);
}

std::optional<int> CpusOfList(std::string_view text) {
  text = Trim(text);
  int64_t count = 0;
  while (!text.empty()) {
    std::string_view range = Take(&text, ',');
    const std::optional<int64_t> first = Number(Take(&range, '-'));
    const std::optional<int64_t> last = range.empty() ? first : Number(range);
    if (!first.has_value() || !last.has_value() || *first < 0 || *last < *first) {
      return std::nullopt;
    }
    count += *last - *first + 1;
  }
  if (count < 1 || count > (1 << 20)) return std::nullopt;
  return static_cast<int>(count);
}

std::optional<uint64_t> BytesOfLimit(std::string_view text) {
  constexpr int64_t kNone = int64_t{1} << 60;  // v1 writes 2^63 rounded down to a page.
  const std::optional<int64_t> bytes = Number(text);
  if (!bytes.has_value() || *bytes <= 0 || *bytes >= kNone) return std::nullopt;
  return static_cast<uint64_t>(*bytes);
}

std::optional<std::string> CgroupPath(std::string_view proc_self_cgroup,
                                      std::string_view controller) {
  while (!proc_self_cgroup.empty()) {
    std::string_view line = Take(&proc_self_cgroup, '\n');  // "4:cpu,cpuacct:/a/b"
    const std::string_view number = Take(&line, ':');
    std::string_view controllers = Take(&line, ':');
    if (controller.empty()) {
      if (number == "0" && controllers.empty()) return std::string(line);
      continue;
    }
    while (!controllers.empty()) {
      if (Take(&controllers, ',') == controller) return std::string(line);
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> BytesOfMeminfo(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = Take(&text, '\n');  // "MemTotal:       16316412 kB"
    if (Take(&line, ':') != "MemTotal") continue;
    line = Trim(line);
    const std::optional<int64_t> kilobytes = Number(Take(&line, ' '));
    if (!kilobytes.has_value() || *kilobytes <= 0 || line != "kB") return std::nullopt;
    return static_cast<uint64_t>(*kilobytes) * 1024;
  }
  return std::nullopt;
}

std::optional<int> CgroupCpus(const BudgetFiles& files) {
  const auto quota = Lowest<int>(files, "cpu", [](const std::string& directory) {
    const std::optional<int> cpus = CpusOfMax(Contents(directory + "/cpu.max"));
    if (cpus.has_value()) return cpus;
    return CpusOfQuota(Contents(directory + "/cpu.cfs_quota_us"),
                       Contents(directory + "/cpu.cfs_period_us"));
  });
  const auto set = Lowest<int>(files, "cpuset", [](const std::string& directory) {
    const std::optional<int> cpus = CpusOfList(Contents(directory + "/cpuset.cpus.effective"));
    if (cpus.has_value()) return cpus;
    return CpusOfList(Contents(directory + "/cpuset.effective_cpus"));
  });
  if (quota.has_value() && set.has_value()) return std::min(*quota, *set);
  return quota.has_value() ? quota : set;
}

std::optional<uint64_t> CgroupBytes(const BudgetFiles& files) {
  return Lowest<uint64_t>(files, "memory", [](const std::string& directory) {
    const std::optional<uint64_t> bytes = BytesOfLimit(Contents(directory + "/memory.max"));
    if (bytes.has_value()) return bytes;
    return BytesOfLimit(Contents(directory + "/memory.limit_in_bytes"));
  });
}

int CoresOf(const BudgetFiles& files, const std::vector<int>& cpus) {
  std::set<std::string> cores;
  int unknown = 0;
  for (const int cpu : cpus) {
    const std::string siblings =
        Contents(base::Cat(files.cpus, "/cpu", cpu, "/topology/thread_siblings_list"));
    if (siblings.empty()) {
      ++unknown;
    } else {
      cores.insert(siblings);
    }
  }
  return static_cast<int>(cores.size()) + unknown;
}

int CpuBudget() { return Budget(static_cast<int>(AffinityCpus().size())); }

int CoreBudget() { return Budget(CoresOf(BudgetFiles(), AffinityCpus())); }

uint64_t MemoryBudget() {
  constexpr uint64_t kUnknown = 4ull << 30;  // Without /proc nothing else works either.
  const uint64_t machine = BytesOfMeminfo(Contents("/proc/meminfo")).value_or(kUnknown);
  return std::min(machine, CgroupBytes(BudgetFiles()).value_or(machine));
}

int LoopCount(const ServerOptions& options, int cpus) {
  if (options.loops > 0) return options.loops;
  return cpus <= 4 ? 1 : 1 + (cpus - 4 + 7) / 8;
}

uint64_t MemoryLimit(const ServerOptions& options, uint64_t budget) {
  return options.memory_limit_bytes > 0 ? static_cast<uint64_t>(options.memory_limit_bytes)
                                        : budget;
}

uint64_t RequestBytesBudget(const ServerOptions& options, uint64_t memory_limit) {
  return options.request_bytes_budget > 0 ? static_cast<uint64_t>(options.request_bytes_budget)
                                          : memory_limit / 4;
}

}  // namespace tensord::config
