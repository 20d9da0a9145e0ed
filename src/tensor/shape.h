// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/limits.h"
#include "tensor/dtype.h"

namespace tensord::tensor {

// The dims of a real tensor: rank 0..limits::kRankMax, every dim >= 0. A value, 72 bytes.
class Shape {
 public:
  Shape() = default;
  // REQUIRES: dims.size() <= kRankMax, each >= 0 (our own code's shapes; others use Make).
  Shape(std::initializer_list<int64_t> dims);

  // INVALID_ARGUMENT for a negative dim, a rank over kRankMax or more elements than kElementsMax.
  static absl::StatusOr<Shape> Make(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // Product of the dims; 1 for a scalar. Never overflows: Make checked it.
  int64_t elements() const;
  // The same shape with another leading dim. REQUIRES: rank() >= 1, rows >= 0.
  Shape WithRows(int64_t rows) const;
  // "[2,3]", "[]" for a scalar.
  std::string ToString() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, limits::kRankMax> dims_{};
  int rank_ = 0;
};

// A signature's shape: a dim of -1 is open, unknown_rank leaves even the rank open.
struct PartialShape {
  bool unknown_rank = true;
  std::vector<int64_t> dims;

  bool Admits(const Shape& shape) const;
  // "[-1,3]", "<unknown>".
  std::string ToString() const;

  friend bool operator==(const PartialShape&, const PartialShape&) = default;
};

// elements * ElementBytes, INVALID_ARGUMENT above kTensorBytesMax. For strings, use
// string_layout.h.
absl::StatusOr<uint64_t> FixedBytes(DType dtype, const Shape& shape);

}  // namespace tensord::tensor
