// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tensord::doctor {

// The body of a page over plain HTTP. UNAVAILABLE when nobody answers within `timeout`,
// FAILED_PRECONDITION when the answer is not 200. REQUIRES: `server` is "host:port".
absl::StatusOr<std::string> Fetch(const std::string& server, const std::string& path,
                                  absl::Duration timeout);

}  // namespace tensord::doctor
