// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "tensor/dtype.h"

// The Open Inference Protocol's names for element types.
namespace tensord::wire {

// "FP32", "BYTES", ...; empty for what the protocol has no name for (complex numbers, and what is
// not servable).
std::string_view OipName(tensor::DType dtype);
// kInvalid for a name that is not one.
tensor::DType OipDType(std::string_view name);

}  // namespace tensord::wire
