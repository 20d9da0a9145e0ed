// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "train/cluster_spec.h"

// Which CPUs the ranks of this machine run on, and whose memory they prefer.
namespace tensord::train {

// The CPUs of a machine, as far as they are ours.
struct CpuMap {
  struct Cpu {
    int number = 0;
    int node = 0;  // NUMA.
    int core = 0;  // The first CPU of its core: hardware threads of one core have the same.
  };
  std::vector<Cpu> allowed = {};  // By the affinity mask, which a cpuset narrows too.
  int budget = 1;                 // How many of them a quota lets be busy at once.
  int nodes = 1;                  // NUMA nodes with CPUs, of the whole machine.
};
// `root` is "" but in tests.
CpuMap ReadCpuMap(const std::string& root);

struct Place {
  std::vector<int> cpus = {};  // Sorted; empty: where the scheduler likes.
  int memory_node = -1;        // -1: by the kernel's rule.
};

struct PinRequest {
  Mode mode = Mode::kMultiWorker;
  int ranks = 1;                                      // Of this machine.
  std::vector<std::string> gpus = {};                 // Of all of them.
  std::map<std::string, std::vector<int>> near = {};  // CPUs beside a GPU, where known.
};

struct Pinning {
  std::vector<Place> places = {};  // One a rank.
  std::string why_not = {};        // Not empty: no rank is pinned, though there are several.
};

// Ranks without GPUs share our CPUs out: whole NUMA nodes, then whole cores, each as many as the
// others or one more, and two CPUs at least. Ranks with GPUs run on our CPUs beside them, all on
// those of their node. A rank that has the machine to itself is left alone, but for one with a
// single GPU. Pure.
Pinning PlaceRanks(const CpuMap& map, const PinRequest& request);

// Whether this process may say which node its memory comes from. One that was told already, by
// numactl, keeps that: FAILED_PRECONDITION says so.
absl::Status MayPrefer(int node);
// In a child before exec, which keeps it. Only speed is lost when it is refused.
void Prefer(int node);

// "0-3,8" of 0 1 2 3 8.
std::string CpuListText(const std::vector<int>& cpus);

}  // namespace tensord::train
