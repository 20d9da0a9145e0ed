// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tensor/dtype.h"

namespace tensord::tensor {

// What makes an endpoint of a signature `dense`: one tensor of the graph is named for it, and its
// type is one that a message carries. Worker and front both ask this, because what is not dense is
// neither fetched nor expected.
inline bool IsDense(bool names_one_tensor, DType dtype) {
  return names_one_tensor && IsServable(dtype);
}

}  // namespace tensord::tensor
