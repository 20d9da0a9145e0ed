// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"

// Triton's parameters of a request that mean something here, in whatever form they came.
namespace tensord::wire {

// How urgent a call is, as the request says it.
struct OipUrgency {
  uint64_t timeout_micros = 0;  // It has so long for its answer; 0: as long as any.
  uint64_t priority = 0;        // 1 is the highest; 0: none was given.
};

// monostate: a value of another type, or a negative number.
using OipParameter = std::variant<std::monostate, bool, uint64_t, std::string>;

// Whether TakeOipParameter knows the name.
bool IsOipParameter(std::string_view name);
// INVALID_ARGUMENT for a value that makes no sense, UNIMPLEMENTED for a call that is part of a
// sequence. REQUIRES: IsOipParameter(name).
absl::Status TakeOipParameter(std::string_view name, const OipParameter& value,
                              OipUrgency* urgency);

// Of an input or an output: UNIMPLEMENTED for those that ask for an extension that is not served.
absl::Status CheckOipTensorParameter(std::string_view name);

}  // namespace tensord::wire
