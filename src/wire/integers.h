// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tensor/tensor.h"

namespace tensord::wire {

// Calls visit(value) with each integer as its varint; negative ones are sign-extended to 64 bits.
template <typename T, typename Visit>
void ForEachOf(std::span<const std::byte> bytes, Visit visit) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    visit(static_cast<uint64_t>(static_cast<int64_t>(value)));
  }
}

// The same for a tensor of integers; of booleans, each 0 or 1; of halves, their bits.
template <typename Visit>
void ForEachInteger(const tensor::TensorView& tensor, Visit visit) {
  using tensor::DType;
  switch (tensor.dtype) {
    case DType::kInt8:
      return ForEachOf<int8_t>(tensor.bytes, visit);
    case DType::kInt16:
      return ForEachOf<int16_t>(tensor.bytes, visit);
    case DType::kInt32:
      return ForEachOf<int32_t>(tensor.bytes, visit);
    case DType::kUint8:
      return ForEachOf<uint8_t>(tensor.bytes, visit);
    case DType::kUint16:
    case DType::kHalf:
    case DType::kBfloat16:
      return ForEachOf<uint16_t>(tensor.bytes, visit);
    case DType::kUint32:
      return ForEachOf<uint32_t>(tensor.bytes, visit);
    case DType::kBool:
      return ForEachOf<uint8_t>(tensor.bytes,
                                [visit](uint64_t value) { visit(uint64_t{value != 0}); });
    default:
      return ForEachOf<int64_t>(tensor.bytes, visit);
  }
}

}  // namespace tensord::wire
