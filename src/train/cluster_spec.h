// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Who is who in a training job, in TensorFlow's words. Pure.
namespace tensord::train {

enum class Mode {
  kMultiWorker,      // MultiWorkerMirroredStrategy: workers, the first is the chief.
  kMirrored,         // One process that uses all GPUs of the machine: no cluster.
  kParameterServer,  // A chief, workers and parameter servers.
  kLocal,            // Processes that know nothing of each other.
};
// INVALID_ARGUMENT names the words that are known: mwms, mirrored, ps, local.
absl::StatusOr<Mode> ParseMode(std::string_view word);
std::string_view ModeWord(Mode mode);

struct TaskId {
  std::string type;  // "chief", "worker", "ps"
  int index = 0;

  bool operator==(const TaskId&) const = default;
};
// "worker/1"
std::string TaskName(const TaskId& task);

// The task of each rank. With parameter servers: the chief, the workers, at last the servers, so
// that rank 0, which lives where the leader lives, is the chief.
// INVALID_ARGUMENT when there are too few ranks for a chief, a worker and the servers.
absl::StatusOr<std::vector<TaskId>> TasksOf(Mode mode, int ranks, int parameter_servers);

// The value of TF_CONFIG for one rank. Empty when there is no cluster to tell: without peers
// TensorFlow would start a server for nothing.
// REQUIRES: addresses.size() == tasks.size().
std::string TfConfig(Mode mode, const std::vector<TaskId>& tasks,
                     const std::vector<std::string>& addresses, int rank);

}  // namespace tensord::train
