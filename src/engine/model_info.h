// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::engine {

// In the root of a version directory: a text-format tensorflow.serving.BatchingParameters.
inline constexpr std::string_view kBatchingParametersFile = "batching_params.pbtxt";

// How long a run takes that has no company, as measured before anybody waited for one.
struct RunTime {
  uint32_t signature = 0;  // Its number among those of the map, sorted.
  int64_t rows = 0;
  uint64_t nanoseconds = 0;

  bool operator==(const RunTime&) const = default;
};

// What a worker tells about its model once it is loaded. Untrusted by the front: it decodes the
// bytes with bounds and shows them, nothing more.
struct ModelInfo {
  std::string signature_def_map;  // A serialized tensorflow.serving.SignatureDefMap.
  std::string runtime_version;    // "2.21.0"
  std::vector<std::string> devices;
  std::string
      stateful_reason;  // Empty: not stateful. Else e.g. "AssignAddVariableOp in signature incr".
  // Why the runs of a signature should not be shared by requests unless an operator says so: by its
  // name, for those where something stands against it.
  std::map<std::string, std::string> alone;
  std::vector<std::string> warnings;  // E.g. a synthetic warm-up that failed, with its error.
  // Every sandbox layer and what a probe observed, e.g. "landlock: 14 rules, ABI 7",
  // "seccomp: not applied (EINVAL)".
  std::vector<std::string> sandbox;
  std::string sandbox_grade;  // "A" to "D": what it is worth (SECURITY.md).
  // How far it went: 0 there is none, 1 before the model was read, 2 once it was warm. Of the
  // second the front knows.
  uint32_t sandbox_stage = 0;
  uint64_t private_bytes = 0;  // Private_Clean + Private_Dirty after warm-up and malloc_trim.
  std::string warm_up_source;  // "records", "zeros" or, where nothing ran, empty.
  uint32_t warm_up_runs = 0;
  uint64_t load_microseconds = 0;
  uint64_t warm_up_microseconds = 0;
  std::vector<RunTime> run_times;  // At most kTimedRunsMax.
  // Runs that have company stay in one thread each; one alone uses all that the model may use.
  bool two_widths = false;
  // The text of kBatchingParametersFile, where it was asked for and is there.
  std::optional<std::string> batching_parameters;
};

// Whether one of its devices is a GPU.
bool UsesGpu(const ModelInfo& info);

std::string Serialize(const ModelInfo& info);
// INVALID_ARGUMENT for anything malformed.
absl::StatusOr<ModelInfo> ParseModelInfo(std::string_view bytes);

}  // namespace tensord::engine
