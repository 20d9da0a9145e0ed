// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/cluster_spec.h"

// The environment of a rank, as a pure function of where it sits.
namespace tensord::train {

// Where a rank sits in the job and what of its machine is its own.
struct Seat {
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;
  int node = 0, nodes = 1;
  int generation = 1, restarts = 0;
  std::string run_id = {};
  TaskId task = {};
  Mode mode = Mode::kMultiWorker;
  std::string tf_config = {};          // Empty: there is no cluster.
  std::vector<std::string> gpus = {};  // As CUDA_VISIBLE_DEVICES names them; empty: leave it alone.
  int cpus = 1;                        // Of the whole machine, for all its ranks together.
  int pinned_cpus = 0;                 // That this rank is kept to; 0: it is not.
  std::string interface = {};          // Network interface to the other machines; empty: unknown.
};

// The injected Python help.
struct Help {
  bool inject = true;
  std::string folder = {};  // Where its sitecustomize.py lies.
  int64_t register_ms = 0;
  int64_t heartbeat_ms = 0;
  int beat_fd = -1;  // Where it reports steps.
};

// The variables that a rank gets in addition, "NAME=value"; of those that steer speed alone, only
// what `inherited` leaves open.
std::vector<std::string> RankVariables(const Seat& seat, const Help& help,
                                       const std::vector<std::string>& inherited);
// `inherited` with these set.
std::vector<std::string> Merge(std::vector<std::string> inherited,
                               const std::vector<std::string>& variables);
// The value of a variable, or "".
std::string_view ValueOf(const std::vector<std::string>& environment, std::string_view name);
// For people: values of names that sound like secrets are stars, and who logs in to an address.
std::string Masked(std::string_view variable);

// The GPUs of one of `local_ranks` ranks. With fewer GPUs than ranks, ranks share.
std::vector<std::string> GpusOfRank(const std::vector<std::string>& all, int local_rank,
                                    int local_ranks);

}  // namespace tensord::train
