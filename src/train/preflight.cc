// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/preflight.h"

#include <cstdlib>

#include "base/text.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

struct Equal {
  std::string_view what;
  std::string NodeFacts::*member;
  std::string_view remedy;
};
constexpr Equal kEqual[] = {
    {"Python", &NodeFacts::python, "use the same interpreter on all machines"},
    {"TensorFlow", &NodeFacts::tensorflow, "install the same version: pip install tensorflow==…"},
    {"Keras", &NodeFacts::keras, "install the same version: pip install keras==…"},
    {"CUDA", &NodeFacts::cuda, "install the same driver and CUDA libraries"},
    {"the script's hash", &NodeFacts::script_hash, "copy the same script to all machines"},
};

constexpr int64_t kDiskFreeMin = 1 << 30;  // Less than one checkpoint of a real model.

void CheckOne(const NodeFacts& node, Findings* findings) {
  if (!node.checkpoint_error.empty()) {
    findings->errors.push_back(base::Cat(node.host, ": ", node.checkpoint_error));
  }
  if (node.disk_free_bytes >= 0 && node.disk_free_bytes < kDiskFreeMin) {
    findings->warnings.push_back(base::Cat(node.host, ": only ", node.disk_free_bytes >> 20,
                                           " MiB are free where checkpoints go"));
  }
  if (node.open_files > 0 && node.open_files < limits::kFilesMin) {
    findings->warnings.push_back(base::Cat(node.host, ": a process may open only ", node.open_files,
                                           " files: raise it, ulimit -n ", limits::kFilesMin));
  }
}

}  // namespace

Findings CompareNodes(const std::vector<NodeFacts>& nodes) {
  Findings findings;
  for (const NodeFacts& node : nodes) CheckOne(node, &findings);
  for (size_t i = 1; i < nodes.size(); ++i) {
    const NodeFacts& a = nodes[0];
    const NodeFacts& b = nodes[i];
    for (const Equal& equal : kEqual) {
      if (a.*equal.member == b.*equal.member) continue;
      const auto has = [&](const NodeFacts& node) {
        const std::string& value = node.*equal.member;
        return base::Cat(node.host, " has ", value.empty() ? "none" : value);
      };
      findings.errors.push_back(
          base::Cat(equal.what, " differs: ", has(a), ", ", has(b), ": ", equal.remedy));
    }
    if (a.gpus != b.gpus) {
      findings.errors.push_back(base::Cat(
          "the number of GPUs differs: ", a.host, " shows ", a.gpus, ", ", b.host, " shows ",
          b.gpus, ": TensorFlow expects the same on all; CUDA_VISIBLE_DEVICES hides some"));
    }
    if (std::abs(b.clock_ms - a.clock_ms) > absl::ToInt64Milliseconds(limits::kClockSkewMax)) {
      findings.warnings.push_back(base::Cat("the clocks of ", a.host, " and ", b.host, " are ",
                                            std::abs(b.clock_ms - a.clock_ms),
                                            " ms apart: start chrony or another NTP client"));
    }
  }
  return findings;
}

}  // namespace tensord::train
