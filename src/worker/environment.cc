// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace tensord::worker {
namespace {

constexpr std::array<std::string_view, 6> kPrefixes = {"TF_",  "CUDA_", "NVIDIA_",
                                                       "OMP_", "KMP_",  "MALLOC_"};
constexpr std::array<std::string_view, 2> kNames = {"XLA_FLAGS", "LD_LIBRARY_PATH"};

}  // namespace

bool KeepsVariable(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [variable](std::string_view p) { return variable.starts_with(p); });
}

void DropForeignVariables() {
  char** kept = environ;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    if (KeepsVariable(*at)) {
      *kept++ = *at;
    } else {
      explicit_bzero(*at, std::strlen(*at));
    }
  }
  if (kept != nullptr) *kept = nullptr;
}

}  // namespace tensord::worker
