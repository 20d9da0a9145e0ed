// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/request.h"

namespace tensord::wire {

// Walks a serialized tensorflow.serving.PredictRequest once; tensors stay where they are in `body`
// whenever their bytes there are the packed form already (see tensor_walk.h).
// INVALID_ARGUMENT, in the original's words, for what it would refuse before looking at the model.
// Lifetime: `body` outlives the request.
absl::StatusOr<tensor::PredictRequest> ParsePredict(std::string_view body);

// A serialized tensorflow.serving.ModelSpec. INVALID_ARGUMENT when malformed or without a name.
absl::StatusOr<tensor::ModelSpec> ParseModelSpec(std::string_view bytes);

}  // namespace tensord::wire
