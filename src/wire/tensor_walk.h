// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/limits.h"
#include "tensor/tensor.h"

namespace tensord::wire {

// A TensorProto, decoded. `owned` is empty when `view` points into the message's own bytes.
// Lifetime: as the message, and as this value or whatever `owned` was moved to (moving a Tensor
// keeps its bytes in place).
struct DecodedTensor {
  tensor::TensorView view;
  tensor::Tensor owned;
};

// What the tensors of one request may still take beyond the request's own bytes; decoding draws
// from it.
struct DecodeBudget {
  uint64_t bytes = limits::kDecodedBytesMax;        // For copies.
  uint64_t filled_bytes = limits::kFilledBytesMax;  // Of these, for elements nobody sent.
};

// INVALID_ARGUMENT when `bytes` are more than is left for copies.
absl::Status Draw(uint64_t bytes, DecodeBudget* budget);

// Walks one serialized tensorflow.TensorProto, given in one or more pieces that protobuf would
// merge into one message. No copy when tensor_content, or one packed value field, is already the
// packed form.
// INVALID_ARGUMENT says what was expected and what came; the caller adds the input's name.
absl::StatusOr<DecodedTensor> DecodeTensor(std::span<const std::string_view> pieces,
                                           DecodeBudget* budget);

}  // namespace tensord::wire
