// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What schedulers tell their processes about the others. Pure.
namespace tensord::train {

struct Placement {
  std::string scheduler = {};  // "Slurm", "Kubernetes"
  int nodes = 0;               // 0: it does not say.
  int node_rank = 0;
  std::string leader = {};  // Its host.
};

// Empty when no scheduler started us. `host_name` is this machine's, with its domain if it has one.
std::optional<Placement> FromScheduler(const std::vector<std::string>& environment,
                                       std::string_view host_name);

// Slurm's short form of host lists, written out: "gpu[01-03,7],login" -> gpu01 gpu02 gpu03 gpu7
// login. Empty for what is no such list.
std::vector<std::string> ExpandHostList(std::string_view text);

}  // namespace tensord::train
