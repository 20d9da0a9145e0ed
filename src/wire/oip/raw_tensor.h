// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"
#include "wire/tensor_walk.h"

// The protocol's binary form of a tensor: elements little-endian in row-major order; BYTES as four
// bytes of length and the bytes, element by element.
namespace tensord::wire {

// Reads it. No copy unless the packed form is another one: strings, and booleans that are neither 0
// nor 1. INVALID_ARGUMENT says what was expected. Lifetime: as DecodeTensor's.
absl::StatusOr<DecodedTensor> ReadRawTensor(tensor::DType dtype, const tensor::Shape& shape,
                                            std::string_view bytes, DecodeBudget* budget);

// How long the form is. INTERNAL when the tensor is not its packed form (it comes from a worker).
absl::StatusOr<uint64_t> RawTensorBytes(const tensor::NamedTensor& output);
// REQUIRES: RawTensorBytes was OK.
void AppendRawTensor(const tensor::TensorView& tensor, std::string* out);

// The packed strings of an output. INTERNAL likewise; UNIMPLEMENTED for a dtype that the protocol
// has no name for.
absl::Status CheckOipOutput(const tensor::NamedTensor& output);

}  // namespace tensord::wire
