// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/find_libraries.h"

namespace tensord::engine {

inline constexpr char kFrameworkLibrary[] = "libtensorflow_framework.so.2";
inline constexpr char kRuntimeLibrary[] = "libtensorflow_cc.so.2";

const LibraryPackage& TensorFlowPackage();

inline RuntimePlaces PlacesOfThisProcess(std::string explicit_directory) {
  return PlacesOf(TensorFlowPackage(), std::move(explicit_directory));
}
inline std::vector<RuntimeCandidate> LookForRuntime(const RuntimePlaces& places) {
  return LookFor(TensorFlowPackage(), places);
}
inline absl::StatusOr<std::string> FindRuntime(const RuntimePlaces& places) {
  return Find(TensorFlowPackage(), places);
}

}  // namespace tensord::engine
