// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

// A tensor's *packed form* is what travels between processes:
//   fixed-width types: elements in row-major order, little-endian, no padding; bool is 0 or 1;
//   strings: string_layout.h (offsets, then bytes).
namespace tensord::tensor {

// A tensor whose packed bytes belong to somebody else.
// Lifetime: whoever hands a view over says how long `bytes` stays.
struct TensorView {
  DType dtype = DType::kInvalid;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Packed bytes on the heap, aligned to 64 so that the runtime and SIMD code can use them in place.
// Uninitialised on creation.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size);

  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  size_t size_ = 0;
};

// A tensor that owns its packed bytes.
struct Tensor {
  DType dtype = DType::kInvalid;
  Shape shape;
  Buffer buffer;

  TensorView view() const { return {dtype, shape, buffer.bytes()}; }
};

// One named input or output. Lifetime: as TensorView's, for the name, too.
struct NamedTensor {
  std::string_view name;
  TensorView tensor;
};

}  // namespace tensord::tensor
