// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/machine.h"

namespace tensord::doctor {

// The TensorFlow that would be used, from the files beside it. No Python is started.
struct RuntimeFacts {
  std::string directory;      // Empty: none was found.
  std::string site_packages;  // The directory above it, as it is below the machine's root.
  std::string why;            // Where it was looked for.
  std::vector<std::string> looked_at;
  std::string version;  // "2.21.0"; empty: not told.
  std::string wheel;    // "tensorflow_cpu"
  // Of build_info.py.
  bool cuda = false;
  std::string cuda_version;               // "12.5.1"
  std::string cudnn_version;              // "9"
  std::vector<std::string> capabilities;  // "sm_80", "compute_90"
};

RuntimeFacts ReadRuntime(const Machine& machine);

// A row of TensorFlow's table of tested builds.
struct TestedBuild {
  int minor;  // Of TensorFlow 2.
  std::string_view python;
  std::string_view cudnn;
  std::string_view cuda;
};
// Null: not in the table.
const TestedBuild* TestedBuildOf(std::string_view version);

// "12.5.1" compared to "12.4" by the numbers between the dots: negative, 0 or positive; only as
// many as both have.
int CompareVersions(std::string_view a, std::string_view b);

}  // namespace tensord::doctor
