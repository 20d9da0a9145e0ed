// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/pinning.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <tuple>

#include "base/small_file.h"
#include "base/text.h"
#include "config/cpu_budget.h"
#include "train/environment.h"
#include "train/machine.h"

namespace tensord::train {
namespace {

constexpr int kMemoryNodesMax = 1024;  // Of a mask; the kernel's own limit.
// With one, a thread that wakes another stops for it. TensorFlow's iterators may then miss that
// they are to end, and end up to a minute later.
constexpr int kRankCpusMin = 2;
constexpr size_t kMaskBits = sizeof(unsigned long) * CHAR_BIT;

std::vector<int> AllowedCpus(const std::string& root) {
  constexpr std::string_view kName = "Cpus_allowed_list:";
  std::istringstream status(base::SmallFile(base::Cat(root, "/proc/self/status")));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kName)) continue;
    const size_t begin = line.find_first_not_of(" \t", kName.size());
    return begin == std::string::npos ? std::vector<int>() : ParseCpuList(line.substr(begin));
  }
  return {};
}

// NUMA node by CPU; nodes of memory alone are not in it.
std::map<int, int> NodesOfCpus(const std::string& root) {
  std::map<int, int> nodes;
  std::error_code error;
  const auto folder =
      std::filesystem::directory_iterator(base::Cat(root, "/sys/devices/system/node"), error);
  for (const auto& entry : folder) {
    const std::string name = entry.path().filename().string();
    int node = 0;
    const char* const end = name.data() + name.size();
    if (!name.starts_with("node") || std::from_chars(name.data() + 4, end, node).ptr != end) {
      continue;
    }
    const auto cpus = ParseCpuList(base::SmallFile((entry.path() / "cpulist").string()));
    for (const int cpu : cpus) nodes[cpu] = node;
  }
  return nodes;
}

int CountNodes(const std::map<int, int>& nodes) {
  std::set<int> distinct;
  for (const auto& [cpu, node] : nodes) distinct.insert(node);
  return std::max(1, static_cast<int>(distinct.size()));
}

// The node of all of them; -1 when there are more, or the machine has but one.
int CommonNode(const CpuMap& map, const std::vector<int>& cpus) {
  std::set<int> nodes;
  for (const CpuMap::Cpu& cpu : map.allowed) {
    if (std::binary_search(cpus.begin(), cpus.end(), cpu.number)) nodes.insert(cpu.node);
  }
  return map.nodes > 1 && nodes.size() == 1 ? *nodes.begin() : -1;
}

// Hardware threads that go to one rank: those of a core, or, with fewer cores than ranks, one.
std::vector<std::vector<int>> Units(std::vector<CpuMap::Cpu> cpus, int ranks) {
  std::sort(cpus.begin(), cpus.end(), [](const CpuMap::Cpu& a, const CpuMap::Cpu& b) {
    return std::tie(a.node, a.core, a.number) < std::tie(b.node, b.core, b.number);
  });
  std::vector<std::vector<int>> cores;
  std::vector<std::vector<int>> threads;
  int core = -1;
  for (const CpuMap::Cpu& cpu : cpus) {
    if (cores.empty() || cpu.core != core) cores.emplace_back();
    core = cpu.core;
    cores.back().push_back(cpu.number);
    threads.push_back({cpu.number});
  }
  return static_cast<int>(cores.size()) < ranks ? threads : cores;
}

// Equal runs of units in the order of nodes: where the numbers allow it, whole nodes.
std::vector<Place> ShareOut(const CpuMap& map, int ranks) {
  const std::vector<std::vector<int>> units = Units(map.allowed, ranks);
  std::vector<Place> places(static_cast<size_t>(ranks));
  for (size_t i = 0; i < places.size(); ++i) {
    Place& place = places[i];
    const size_t end = (i + 1) * units.size() / places.size();
    for (size_t unit = i * units.size() / places.size(); unit < end; ++unit) {
      place.cpus.insert(place.cpus.end(), units[unit].begin(), units[unit].end());
    }
    std::sort(place.cpus.begin(), place.cpus.end());
    place.memory_node = CommonNode(map, place.cpus);
  }
  return places;
}

Place BesideGpus(const CpuMap& map, const PinRequest& request, int rank) {
  Place place;
  const auto gpus = GpusOfRank(request.gpus, rank, request.ranks);
  if (gpus.size() != 1 && request.ranks == 1) return place;
  std::set<int> cpus;
  for (const std::string& gpu : gpus) {
    const auto at = request.near.find(gpu);
    if (at != request.near.end()) cpus.insert(at->second.begin(), at->second.end());
  }
  for (const CpuMap::Cpu& cpu : map.allowed) {
    if (cpus.contains(cpu.number)) place.cpus.push_back(cpu.number);
  }
  std::sort(place.cpus.begin(), place.cpus.end());
  place.memory_node = CommonNode(map, place.cpus);
  return place;
}

}  // namespace

CpuMap ReadCpuMap(const std::string& root) {
  CpuMap map;
  const std::map<int, int> nodes = NodesOfCpus(root);
  for (const int number : AllowedCpus(root)) {
    const auto siblings = ParseCpuList(base::SmallFile(
        base::Cat(root, "/sys/devices/system/cpu/cpu", number, "/topology/thread_siblings_list")));
    const auto node = nodes.find(number);
    map.allowed.push_back({.number = number,
                           .node = node == nodes.end() ? 0 : node->second,
                           .core = siblings.empty() ? number : siblings.front()});
  }
  const int cpus = static_cast<int>(map.allowed.size());
  const config::BudgetFiles files = {.proc = root + "/proc", .cgroup = root + "/sys/fs/cgroup"};
  map.budget = std::max(1, std::min(cpus, config::CgroupCpus(files).value_or(cpus)));
  map.nodes = CountNodes(nodes);
  return map;
}

Pinning PlaceRanks(const CpuMap& map, const PinRequest& request) {
  Pinning pinning;
  pinning.places.resize(static_cast<size_t>(request.ranks));
  if (!request.gpus.empty()) {
    for (int i = 0; i < request.ranks; ++i) {
      pinning.places[static_cast<size_t>(i)] = BesideGpus(map, request, i);
    }
    return pinning;
  }
  if (request.ranks == 1) return pinning;
  const int cpus = std::min(static_cast<int>(map.allowed.size()), map.budget);
  if (request.mode == Mode::kParameterServer) {
    pinning.why_not = "chief, workers and parameter servers need CPUs of each other at times";
  } else if (cpus < kRankCpusMin * request.ranks) {
    pinning.why_not = base::Cat("we may use ", cpus, " CPU", cpus == 1 ? "" : "s", " for ",
                                request.ranks, " ranks here, fewer than two each");
  } else {
    pinning.places = ShareOut(map, request.ranks);
  }
  return pinning;
}

absl::Status MayPrefer(int node) {
  int policy = 0;
  if (syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0 && policy != MPOL_DEFAULT) {
    return absl::FailedPreconditionError("a memory policy is set already, which stays");
  }
  errno = 0;
  Prefer(node);
  if (errno != 0) return absl::UnavailableError(std::strerror(errno));
  syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
  return absl::OkStatus();
}

void Prefer(int node) {
  if (node < 0 || node >= kMemoryNodesMax) return;
  unsigned long mask[kMemoryNodesMax / kMaskBits] = {};
  const auto bit = static_cast<size_t>(node);
  mask[bit / kMaskBits] = 1UL << (bit % kMaskBits);
  // The kernel takes one bit fewer than it is told.
  syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask, kMemoryNodesMax);
}

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += base::Cat(text.empty() ? "" : ",", cpus[i]);
    if (last > i) text += base::Cat("-", cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace tensord::train
