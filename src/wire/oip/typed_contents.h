// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"
#include "wire/tensor_walk.h"

// inference.InferTensorContents: a tensor's values in a field for their type.
namespace tensord::wire {

// Reads it, given in pieces that protobuf would merge. INVALID_ARGUMENT says what was expected.
// Lifetime: as DecodeTensor's.
absl::StatusOr<DecodedTensor> ReadTypedContents(tensor::DType dtype, const tensor::Shape& shape,
                                                std::span<const std::string_view> pieces,
                                                DecodeBudget* budget);

// False for FP16 and BF16, whose values can only be sent raw.
bool HasTypedContents(tensor::DType dtype);

// The serialized message. REQUIRES: CheckOipOutput was OK, and HasTypedContents.
std::string EncodeTypedContents(const tensor::TensorView& tensor);

}  // namespace tensord::wire
