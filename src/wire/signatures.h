// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/signature.h"

namespace tensord::wire {

// Decodes a serialized tensorflow.serving.SignatureDefMap: all names sorted, defaults as tensors.
// The bytes come from a worker and are not trusted: INVALID_ARGUMENT, naming the place, for what is
// malformed, above the limits, or a default that does not fit its input.
absl::StatusOr<tensor::SignatureList> ParseSignatures(std::string_view signature_def_map_bytes);

}  // namespace tensord::wire
