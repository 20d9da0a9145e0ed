// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "train/messages.h"

// This machine: its GPUs, and the facts that a job compares.
namespace tensord::train {

struct GpuList {
  std::vector<std::string> visible = {};              // As CUDA_VISIBLE_DEVICES names them.
  std::map<std::string, std::vector<int>> cpus = {};  // Of the NUMA node of a GPU, where known.
};
// From CUDA_VISIBLE_DEVICES, or all that the driver shows. `root` is "" but in tests.
GpuList FindGpus(const std::vector<std::string>& environment, const std::string& root);

// "0-3,8" -> 0 1 2 3 8; empty for what is no such list.
std::vector<int> ParseCpuList(std::string_view text);

// Asks the program's Python for its versions, looks at the script and the checkpoint directory,
// where it leaves a mark that the other machines look for.
NodeFacts FindFacts(const std::vector<std::string>& program,
                    const std::vector<std::string>& environment, const GpuList& gpus, int cpus,
                    const std::string& checkpoint_dir, const std::string& run_id);
void RemoveMark(const std::string& checkpoint_dir, const NodeFacts& facts);

}  // namespace tensord::train
