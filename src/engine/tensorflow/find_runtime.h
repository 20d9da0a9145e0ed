// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::engine {

inline constexpr char kFrameworkLibrary[] = "libtensorflow_framework.so.2";
inline constexpr char kRuntimeLibrary[] = "libtensorflow_cc.so.2";

struct RuntimePlaces {
  std::string explicit_directory;     // --tensorflow_library_dir; when set, nothing else counts.
  std::string environment_directory;  // $TENSORD_TENSORFLOW_DIR; likewise.
  std::string binary_directory;       // Where the running program lies.
  std::string virtual_env;            // $VIRTUAL_ENV
  std::vector<std::string> system_roots = {"/usr/local", "/usr"};  // With lib/python3*/ below.
};

// A directory that was looked at, and what was found there.
struct RuntimeCandidate {
  std::string directory;
  std::string why;      // "--tensorflow_library_dir", "beside the program", "site-packages of ...".
  std::string missing;  // The library that is not there; empty when both are.
};

// The places of this process: its environment and /proc/self/exe.
RuntimePlaces PlacesOfThisProcess(std::string explicit_directory);

// Every place that was looked at, in order, the first complete one last. A directory may be the one
// with the two libraries or its parent (site-packages). No Python is started.
std::vector<RuntimeCandidate> LookForRuntime(const RuntimePlaces& places);

// The directory with both libraries. NOT_FOUND, with every place that was looked at.
absl::StatusOr<std::string> FindRuntime(const RuntimePlaces& places);

}  // namespace tensord::engine
