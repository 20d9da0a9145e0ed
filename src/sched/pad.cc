// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/pad.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "tensor/string_layout.h"

namespace tensord::sched {
namespace {

using tensor::Buffer;
using tensor::DType;
using tensor::Shape;
using tensor::StringReader;
using tensor::StringWriter;
using tensor::TensorView;

// Elements and bytes of a batch as it grows; doubles, because dims of different calls may multiply
// beyond 64 bits.
struct Extent {
  std::vector<int64_t> dims;  // The largest of each, the first summed up.
  double element_bytes = 0;   // Of the largest padding element.
  double own_bytes = 0;

  void Add(const TensorView& tensor) {
    if (dims.empty()) dims.assign(static_cast<size_t>(tensor.shape.rank()), 0);
    dims[0] += tensor.shape.dim(0);
    for (int i = 1; i < tensor.shape.rank(); ++i) {
      auto& dim = dims[static_cast<size_t>(i)];
      dim = std::max(dim, tensor.shape.dim(i));
    }
    own_bytes += static_cast<double>(tensor.bytes.size());
    element_bytes = std::max(element_bytes, PadBytes(tensor));
  }
  double PaddedBytes() const {
    double elements = 1;
    for (const int64_t dim : dims) elements *= static_cast<double>(dim);
    return elements * element_bytes;
  }

 private:
  static double PadBytes(const TensorView& tensor) {
    if (tensor.dtype != DType::kString) {
      return static_cast<double>(tensor::ElementBytes(tensor.dtype));
    }
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    const auto reader = StringReader::Open(tensor.bytes, elements);
    const size_t first = reader.ok() ? (*reader)[0].size() : 0;
    return static_cast<double>(tensor::PackedStringBytes(1, first));
  }
};

// Walks a tensor's elements at their places in a larger one: calls copy(from, count) for runs that
// are there, and fill(count) for those that are not, in the order of the larger one.
// REQUIRES: a rank of at least 2; rank 1 has no dim that could be padded.
template <typename Copy, typename Fill>
void WalkPadded(const Shape& from, const Shape& to, Copy copy, Fill fill) {
  const int last = to.rank() - 1;
  const int64_t row = from.dim(last);  // Elements of an innermost run.
  const int64_t padded_row = to.dim(last);
  std::array<int64_t, limits::kRankMax> at{};
  int64_t source = 0;
  int64_t runs = 1;
  for (int i = 0; i < last; ++i) runs *= to.dim(i);
  for (int64_t run = 0; run < runs; ++run) {
    bool inside = true;
    for (int i = 0; i < last; ++i) inside = inside && at[static_cast<size_t>(i)] < from.dim(i);
    if (inside) {
      copy(source, row);
      source += row;
      if (padded_row > row) fill(padded_row - row);
    } else {
      fill(padded_row);
    }
    for (int i = last - 1; i >= 0 && ++at[static_cast<size_t>(i)] == to.dim(i); --i) {
      at[static_cast<size_t>(i)] = 0;
    }
  }
}

Buffer PadFixed(const TensorView& tensor, const Shape& to) {
  const size_t width = tensor::ElementBytes(tensor.dtype);
  Buffer padded(static_cast<size_t>(to.elements()) * width);
  std::byte* out = padded.bytes().data();
  const std::byte* first = tensor.bytes.data();
  WalkPadded(
      tensor.shape, to,
      [&](int64_t from, int64_t count) {
        const size_t bytes = static_cast<size_t>(count) * width;
        std::memcpy(out, first + static_cast<size_t>(from) * width, bytes);
        out += bytes;
      },
      [&](int64_t count) {
        for (int64_t i = 0; i < count; ++i, out += width) std::memcpy(out, first, width);
      });
  return padded;
}

Buffer PadStrings(const TensorView& tensor, const Shape& to) {
  const auto elements = static_cast<uint64_t>(tensor.shape.elements());
  const auto reader = StringReader::Open(tensor.bytes, elements);
  TENSORD_CHECK(reader.ok());  // Packed by us when the call was read.
  const auto padded_elements = static_cast<uint64_t>(to.elements());
  const uint64_t payload =
      reader->payload().size() + (padded_elements - elements) * (*reader)[0].size();
  Buffer padded(tensor::PackedStringBytes(padded_elements, payload));
  StringWriter writer(padded.bytes(), padded_elements);
  WalkPadded(
      tensor.shape, to,
      [&](int64_t from, int64_t count) {
        for (int64_t i = from; i < from + count; ++i) {
          writer.Add((*reader)[static_cast<uint64_t>(i)]);
        }
      },
      [&](int64_t count) {
        for (int64_t i = 0; i < count; ++i) writer.Add((*reader)[0]);
      });
  return padded;
}

}  // namespace

bool CanPad(CallInputs inputs) {
  return std::ranges::all_of(inputs, [](const TensorView& input) {
    return input.shape.rank() > 0 && input.shape.elements() > 0;
  });
}

size_t PaddedPrefix(std::span<const CallInputs> calls) {
  std::vector<Extent> inputs(calls.front().size());
  for (size_t i = 0; i < calls.size(); ++i) {
    double padded = 0;
    double own = 0;
    for (size_t t = 0; t < inputs.size(); ++t) {
      inputs[t].Add(calls[i][t]);
      padded += inputs[t].PaddedBytes();
      own += inputs[t].own_bytes;
    }
    const double most = std::max(static_cast<double>(limits::kPaddedBytesMax), 2 * own);
    if (i > 0 && padded > most) return i;
  }
  return calls.size();
}

void PadPieces(std::span<TensorView> pieces, std::vector<std::shared_ptr<const void>>* keeps) {
  std::vector<int64_t> dims(pieces.front().shape.dims().begin(), pieces.front().shape.dims().end());
  for (const TensorView& piece : pieces) {
    for (size_t i = 1; i < dims.size(); ++i) {
      dims[i] = std::max(dims[i], piece.shape.dim(static_cast<int>(i)));
    }
  }
  for (TensorView& piece : pieces) {
    dims[0] = piece.shape.dim(0);
    const absl::StatusOr<Shape> shape = Shape::Make(dims);
    TENSORD_CHECK(shape.ok());  // PaddedPrefix kept it small.
    if (*shape == piece.shape) continue;
    auto padded = std::make_shared<Buffer>(piece.dtype == DType::kString ? PadStrings(piece, *shape)
                                                                         : PadFixed(piece, *shape));
    piece.shape = *shape;
    piece.bytes = std::as_const(*padded).bytes();
    keeps->push_back(std::move(padded));
  }
}

}  // namespace tensord::sched
