// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/cluster_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "obs/log.h"

namespace tensord::train {
namespace {

constexpr std::array<std::pair<std::string_view, Mode>, 4> kModes = {{
    {"mwms", Mode::kMultiWorker},
    {"mirrored", Mode::kMirrored},
    {"ps", Mode::kParameterServer},
    {"local", Mode::kLocal},
}};

}  // namespace

absl::StatusOr<Mode> ParseMode(std::string_view word) {
  for (const auto& [name, mode] : kModes) {
    if (name == word) return mode;
  }
  return absl::InvalidArgumentError(
      base::Cat("--mode is one of mwms, mirrored, ps and local, not \"", word, "\""));
}

std::string_view ModeWord(Mode mode) {
  for (const auto& [name, known] : kModes) {
    if (known == mode) return name;
  }
  return "";
}

std::string TaskName(const TaskId& task) { return base::Cat(task.type, "/", task.index); }

absl::StatusOr<std::vector<TaskId>> TasksOf(Mode mode, int ranks, int parameter_servers) {
  std::vector<TaskId> tasks;
  if (mode != Mode::kParameterServer) {
    for (int i = 0; i < ranks; ++i) tasks.push_back({"worker", i});
    return tasks;
  }
  const int workers = ranks - 1 - parameter_servers;
  if (parameter_servers < 1 || workers < 1) {
    return absl::InvalidArgumentError(base::Cat(
        "--mode ps needs a chief, at least one worker and one parameter server: with --ps ",
        parameter_servers, " that is at least ", 2 + std::max(parameter_servers, 1),
        " processes, and there are ", ranks));
  }
  tasks.push_back({"chief", 0});
  for (int i = 0; i < workers; ++i) tasks.push_back({"worker", i});
  for (int i = 0; i < parameter_servers; ++i) tasks.push_back({"ps", i});
  return tasks;
}

std::string TfConfig(Mode mode, const std::vector<TaskId>& tasks,
                     const std::vector<std::string>& addresses, int rank) {
  if (mode == Mode::kMirrored || mode == Mode::kLocal || tasks.size() < 2) return "";
  std::string cluster;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool first = i == 0 || tasks[i - 1].type != tasks[i].type;
    if (first) cluster += base::Cat(i == 0 ? "" : "], ", "\"", tasks[i].type, "\": [");
    cluster += base::Cat(first ? "" : ", ", "\"", obs::Escape(addresses[i]), "\"");
  }
  const TaskId& task = tasks[static_cast<size_t>(rank)];
  return base::Cat("{\"cluster\": {", cluster, "]}, \"task\": {\"type\": \"", task.type,
                   "\", \"index\": ", task.index, "}}");
}

}  // namespace tensord::train
