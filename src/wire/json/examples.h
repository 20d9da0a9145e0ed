// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/statusor.h"
#include "tensor/tensor.h"
#include "wire/json/request.h"

namespace tensord::wire {

// The `examples` of a REST classify or regress body as one string tensor [n] of serialized
// tf.Examples, each behind the serialized `context` where there is one. A feature's kind follows
// from its first value: strings and base64 are bytes, integers and booleans int64, other numbers
// float.
// INVALID_ARGUMENT in the original's words.
absl::StatusOr<tensor::Tensor> JsonExamples(const JsonRequest& request);

}  // namespace tensord::wire
