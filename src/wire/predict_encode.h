// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "tensor/request.h"

namespace tensord::wire {

// Serializes a tensorflow.serving.PredictResponse: sized first, written in one pass.
// `answered` holds the model's name, the version that ran and the resolved signature name; a label
// is not echoed. Values go into the typed fields, or into tensor_content when asked.
// INTERNAL when a tensor's bytes are not its packed form (they come from a worker).
absl::StatusOr<std::string> EncodePredictResponse(const tensor::ModelSpec& answered,
                                                  std::span<const tensor::NamedTensor> outputs,
                                                  bool as_tensor_content);

// Likewise a tensorflow.serving.PredictRequest, values in tensor_content.
absl::StatusOr<std::string> EncodePredictRequest(const tensor::ModelSpec& asked,
                                                 std::span<const tensor::NamedTensor> inputs);

// A serialized tensorflow.serving.ModelSpec.
std::string EncodeModelSpec(const tensor::ModelSpec& spec);

}  // namespace tensord::wire
