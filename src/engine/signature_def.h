// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/signature.h"

namespace tensord::engine {

// Reads a serialized map<string, tensorflow.SignatureDef> whose entries are field `map_field` of a
// message: 1 of tensorflow.serving.SignatureDefMap, 5 of tensorflow.MetaGraphDef. Other fields are
// passed over.
//
// Front and worker both call this, which is what makes a signature's number and the order of its
// inputs and outputs mean the same on both sides. Everything is sorted by name; of two entries with
// one key the last counts, as in protobuf. Defaults (SignatureDef.defaults) are not read.
// INVALID_ARGUMENT for bytes that are no such message.
absl::StatusOr<tensor::SignatureList> ParseSignatureDefs(std::string_view bytes,
                                                         uint32_t map_field);

inline constexpr uint32_t kSignatureDefMapField = 1;  // Of tensorflow.serving.SignatureDefMap.
inline constexpr uint32_t kMetaGraphSignatureField = 5;

}  // namespace tensord::engine
