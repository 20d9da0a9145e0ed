// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tensor/shape.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::tensor {

Shape::Shape(std::initializer_list<int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  TENSORD_CHECK(dims.size() <= limits::kRankMax);
  TENSORD_CHECK(std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; }));
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

absl::StatusOr<Shape> Shape::Make(std::span<const int64_t> dims) {
  if (dims.size() > limits::kRankMax) {
    return absl::InvalidArgumentError(
        base::Cat("rank ", dims.size(), " is above the limit of ", limits::kRankMax));
  }
  Shape shape;
  shape.rank_ = static_cast<int>(dims.size());
  // Zero dims do not excuse huge ones: their product without the zeros must be small, too.
  uint64_t product = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return absl::InvalidArgumentError(
          base::Cat("dim ", i, " is ", dims[i], "; a dim must not be negative"));
    }
    const auto factor = static_cast<uint64_t>(std::max<int64_t>(dims[i], 1));
    if (factor > limits::kElementsMax / product) {
      return absl::InvalidArgumentError(base::Cat("shape [", absl::StrJoin(dims, ","),
                                                  "] has more than ", limits::kElementsMax,
                                                  " elements"));
    }
    product *= factor;
    shape.dims_[i] = dims[i];
  }
  return shape;
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims()) product *= dim;
  return product;
}

Shape Shape::WithRows(int64_t rows) const {
  TENSORD_CHECK(rank_ >= 1 && rows >= 0);
  Shape shape = *this;
  shape.dims_[0] = rows;
  return shape;
}

std::string Shape::ToString() const { return base::Cat("[", absl::StrJoin(dims(), ","), "]"); }

bool PartialShape::Admits(const Shape& shape) const {
  if (unknown_rank) return true;
  if (dims.size() != static_cast<size_t>(shape.rank())) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= 0 && dims[i] != shape.dim(static_cast<int>(i))) return false;
  }
  return true;
}

std::string PartialShape::ToString() const {
  return unknown_rank ? "<unknown>" : base::Cat("[", absl::StrJoin(dims, ","), "]");
}

absl::StatusOr<uint64_t> FixedBytes(DType dtype, const Shape& shape) {
  const uint64_t bytes = static_cast<uint64_t>(shape.elements()) * ElementBytes(dtype);
  if (bytes > limits::kTensorBytesMax) {
    return absl::InvalidArgumentError(base::Cat("a ", DTypeName(dtype), " tensor of shape ",
                                                shape.ToString(), " needs ", bytes,
                                                " bytes; the limit is ", limits::kTensorBytesMax));
  }
  return bytes;
}

}  // namespace tensord::tensor
