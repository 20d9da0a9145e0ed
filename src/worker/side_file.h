// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tensord::worker {

// The bytes of a small file that may lie in a version's directory, for the front to understand;
// empty when it is not there. An error fails the load: other parameters would hold than those that
// somebody put there.
absl::StatusOr<std::optional<std::string>> ReadSideFile(const std::string& directory,
                                                        std::string_view name);

}  // namespace tensord::worker
