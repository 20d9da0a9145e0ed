// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tensord::engine {

// The op that the runtime's words say it does not know, or has no kernel for; empty when they say
// nothing of the kind.
std::string_view MissingOp(std::string_view words);

// What to do about an op that is not there: which package is known to hold it, and how its library
// is given to the server.
std::string HelpForOp(std::string_view op);

// The status with that help behind its message, if it is about such an op.
absl::Status ExplainMissingOp(const absl::Status& status);

}  // namespace tensord::engine
