// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "wire/oip/request.h"

namespace tensord::wire {

// Which model a serialized inference.ModelInferRequest is for: an unknown one is told before a
// malformed tensor. INVALID_ARGUMENT when the bytes are none.
absl::StatusOr<tensor::ModelSpec> WalkOipSpec(std::string_view body);

// The whole request; its spec is WalkOipSpec's. Raw tensors, and typed ones of 32 and 64 bit
// floats, stay where they are in the body. INVALID_ARGUMENT names the input.
// Lifetime: the body outlives the request.
absl::StatusOr<OipRequest> WalkOipInfer(std::string_view body);

}  // namespace tensord::wire
