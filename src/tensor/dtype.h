// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tensord::tensor {

// Element types, numbered as tensorflow.DataType (tensorflow/core/framework/types.proto).
enum class DType : int32_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
};

// The runtime's name, as its own messages print it: "float", "int32", "string", ...
// "unknown" for a number outside the list.
std::string_view DTypeName(DType dtype);

// True for what a client may send and receive: all but resource, variant, quantized and invalid.
bool IsServable(DType dtype);

// Bytes of one element; 0 for string and for what is not servable.
size_t ElementBytes(DType dtype);

}  // namespace tensord::tensor
