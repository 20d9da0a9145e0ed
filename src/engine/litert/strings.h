// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/string_layout.h"
#include "tensor/tensor.h"

// TensorFlow Lite's form of a string tensor: the number of strings, then where each begins and the
// last ends, counted from the start of all, as 32-bit integers; then their bytes.
namespace tensord::engine {

// RESOURCE_EXHAUSTED when 32 bits do not reach.
absl::StatusOr<tensor::Buffer> ToLiteStrings(const tensor::StringReader& strings);

// The strings of a tensor of that many elements. INTERNAL for bytes that are none: the library made
// them, from a model that may be hostile.
absl::StatusOr<std::vector<std::string_view>> FromLiteStrings(std::span<const std::byte> bytes,
                                                              uint64_t elements);

}  // namespace tensord::engine
