// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tensorflow/runtime.h"

namespace tensord::engine {

// The names of all ops that the runtime knows once these libraries are loaded, in its order. The
// libraries stay loaded. The runtime's status, with the library's name, when one cannot be loaded.
absl::StatusOr<std::vector<std::string>> ListOps(const Runtime& runtime,
                                                 const std::vector<std::string>& op_libraries);

}  // namespace tensord::engine
