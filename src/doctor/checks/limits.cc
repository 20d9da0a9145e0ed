// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

// A line of /proc/self/limits, and what a server needs of it.
struct Need {
  std::string_view line;  // As the kernel names it.
  std::string_view id;
  int64_t soft_min;
  std::string_view why;
  std::string_view action;
};

constexpr std::array kNeeds = {
    Need{"Max open files", "limits.open_files", 4096,
         "each connection of a client is an open file: the server refuses further ones",
         "ulimit -n 65536, LimitNOFILE= in a systemd unit, --ulimit nofile= in docker"},
    Need{"Max processes", "limits.processes", 4096,
         "each worker has tens of threads, and a user's threads all count",
         "ulimit -u unlimited, TasksMax= in a systemd unit, --pids-limit in docker"},
    Need{"Max address space", "limits.address_space", int64_t{1} << 40,
         "TensorFlow and CUDA reserve much more address space than they use",
         "ulimit -v unlimited; limit memory with a cgroup instead"},
    Need{"Max stack size", "limits.stack", 1 << 20,
         "deep graphs are walked recursively inside TensorFlow", "ulimit -s 8192"},
    Need{"Max locked memory", "limits.locked_memory", 64 << 10,
         "NCCL pins memory to exchange gradients over InfiniBand",
         "ulimit -l unlimited on machines that train together"},
};

Finding Look(const Need& need, const std::string& limits) {
  const size_t at = limits.find(need.line);
  if (at == std::string::npos) {
    return {.id = std::string(need.id),
            .level = Level::kInfo,
            .seen = base::Cat(need.line, ": /proc/self/limits does not say")};
  }
  const std::string_view line =
      std::string_view(limits).substr(at, limits.find('\n', at) - at).substr(need.line.size());
  const auto words = Split(line, " ");
  const std::string_view soft = words.empty() ? "?" : words[0];
  Finding finding{.id = std::string(need.id), .seen = base::Cat(need.line, ": ", soft)};
  if (soft == "unlimited" || ToNumber(soft).value_or(0) >= need.soft_min) return finding;
  finding.level = Level::kWarning;
  finding.why = need.why;
  finding.action = need.action;
  return finding;
}

}  // namespace

Findings CheckLimits(const Machine& machine) {
  const std::string limits = machine.ReadOr("/proc/self/limits");
  Findings findings;
  for (const Need& need : kNeeds) findings.push_back(Look(need, limits));
  return findings;
}

}  // namespace tensord::doctor
