// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tensord::engine {

// The metadata of a model.tflite that holds SignatureDefs, which is where the original looks.
inline constexpr char kSignatureDefsMetadata[] = "signature_defs_metadata";

// Its content: a FlexBuffer whose root is a map from signature keys to serialized
// tensorflow.SignatureDefs. INVALID_ARGUMENT for anything else; an empty text is an empty map.
absl::StatusOr<std::map<std::string, std::string>> ParseSignatureMetadata(std::string_view bytes);

}  // namespace tensord::engine
