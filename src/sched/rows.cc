// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/rows.h"

#include <cstring>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::sched {
namespace {

using tensor::Buffer;
using tensor::DType;
using tensor::Shape;
using tensor::StringReader;
using tensor::StringWriter;
using tensor::TensorView;

// Keeps a batch's bytes and the strings that were packed again for one call.
struct CutBytes {
  std::shared_ptr<const void> owner;
  std::vector<Buffer> packed = {};
};

absl::Status CheckRows(const TensorView& tensor, int64_t rows) {
  if (tensor.shape.rank() == 0) {
    return absl::FailedPreconditionError("Batched output tensor has 0 dimensions");
  }
  if (tensor.shape.dim(0) != rows) {
    return absl::FailedPreconditionError(
        base::Cat("Batched output tensor's 0th dimension does not equal the sum of the 0th "
                  "dimension sizes of the input tensors: ",
                  tensor.shape.ToString(), " for ", rows, " rows"));
  }
  if (tensor.dtype == DType::kString) return absl::OkStatus();
  const auto elements = static_cast<uint64_t>(tensor.shape.elements());
  if (tensor.bytes.size() != elements * tensor::ElementBytes(tensor.dtype)) {
    return absl::InternalError(base::Cat("a tensor of shape ", tensor.shape.ToString(), " has ",
                                         tensor.bytes.size(), " bytes"));
  }
  return absl::OkStatus();
}

Buffer PackStrings(const StringReader& reader, uint64_t first, uint64_t count) {
  uint64_t payload_bytes = 0;
  for (uint64_t i = 0; i < count; ++i) payload_bytes += reader[first + i].size();
  Buffer packed(tensor::PackedStringBytes(count, payload_bytes));
  StringWriter writer(packed.bytes(), count);
  for (uint64_t i = 0; i < count; ++i) writer.Add(reader[first + i]);
  return packed;
}

absl::StatusOr<Shape> JoinedShape(std::span<const OwnedViews> pieces, size_t t) {
  const TensorView& first = pieces.front().tensors[t];
  int64_t rows = 0;
  for (const OwnedViews& piece : pieces) {
    const TensorView& tensor = piece.tensors[t];
    if (tensor.shape.rank() == 0) {
      return absl::FailedPreconditionError("Batched output tensor has 0 dimensions");
    }
    rows += tensor.shape.dim(0);
    if (tensor.dtype != first.dtype || first.shape.rank() != tensor.shape.rank() ||
        tensor.shape.WithRows(0) != first.shape.WithRows(0)) {
      return absl::FailedPreconditionError(
          base::Cat("output ", t, " has the shape ", first.shape.ToString(), " in one piece and ",
                    tensor.shape.ToString(), " in another; the pieces cannot be joined"));
    }
  }
  std::vector<int64_t> dims(first.shape.dims().begin(), first.shape.dims().end());
  dims[0] = rows;
  return Shape::Make(dims);
}

absl::StatusOr<Buffer> JoinStrings(std::span<const OwnedViews> pieces, size_t t,
                                   uint64_t elements) {
  std::vector<StringReader> readers;
  uint64_t payload_bytes = 0;
  for (const OwnedViews& piece : pieces) {
    const TensorView& tensor = piece.tensors[t];
    auto reader = StringReader::Open(tensor.bytes, static_cast<uint64_t>(tensor.shape.elements()));
    if (!reader.ok()) return absl::InternalError(reader.status().message());
    payload_bytes += reader->payload().size();
    readers.push_back(*reader);
  }
  Buffer joined(tensor::PackedStringBytes(elements, payload_bytes));
  StringWriter writer(joined.bytes(), elements);
  for (const StringReader& reader : readers) {
    for (uint64_t i = 0; i < reader.size(); ++i) writer.Add(reader[i]);
  }
  return joined;
}

Buffer JoinFixed(std::span<const OwnedViews> pieces, size_t t) {
  size_t bytes = 0;
  for (const OwnedViews& piece : pieces) bytes += piece.tensors[t].bytes.size();
  Buffer joined(bytes);
  std::byte* at = joined.bytes().data();
  for (const OwnedViews& piece : pieces) {
    const std::span<const std::byte> from = piece.tensors[t].bytes;
    if (!from.empty()) std::memcpy(at, from.data(), from.size());
    at += from.size();
  }
  return joined;
}

}  // namespace

absl::StatusOr<RowCutter> RowCutter::Open(std::span<const TensorView> tensors,
                                          std::shared_ptr<const void> owner, int64_t rows) {
  RowCutter cutter(tensors, std::move(owner), rows);
  for (size_t t = 0; t < tensors.size(); ++t) {
    const TensorView& tensor = tensors[t];
    RETURN_IF_ERROR(CheckRows(tensor, rows));
    if (tensor.dtype != DType::kString) continue;
    auto reader = StringReader::Open(tensor.bytes, static_cast<uint64_t>(tensor.shape.elements()));
    if (!reader.ok()) return absl::InternalError(reader.status().message());
    cutter.strings_.resize(tensors.size());
    cutter.strings_[t] = *reader;
  }
  return cutter;
}

OwnedViews RowCutter::Cut(int64_t first, int64_t count) const {
  OwnedViews cut;
  cut.tensors.reserve(tensors_.size());
  std::shared_ptr<CutBytes> packed;
  if (!strings_.empty()) packed = std::make_shared<CutBytes>(CutBytes{.owner = owner_});
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const TensorView& tensor = tensors_[t];
    TensorView& slice = cut.tensors.emplace_back();
    slice.dtype = tensor.dtype;
    slice.shape = tensor.shape.WithRows(count);
    if (tensor.dtype != DType::kString) {
      const size_t row_bytes = tensor.bytes.size() / static_cast<size_t>(rows_);
      slice.bytes = tensor.bytes.subspan(static_cast<size_t>(first) * row_bytes,
                                         static_cast<size_t>(count) * row_bytes);
      continue;
    }
    const auto row_elements = static_cast<uint64_t>(tensor.shape.elements() / rows_);
    packed->packed.push_back(PackStrings(*strings_[t], static_cast<uint64_t>(first) * row_elements,
                                         static_cast<uint64_t>(count) * row_elements));
    slice.bytes = std::as_const(packed->packed.back()).bytes();
  }
  if (packed != nullptr) {
    cut.keep = std::move(packed);
  } else {
    cut.keep = owner_;
  }
  return cut;
}

absl::StatusOr<OwnedViews> JoinRows(std::span<const OwnedViews> pieces) {
  OwnedViews joined;
  auto buffers = std::make_shared<std::vector<Buffer>>();
  for (size_t t = 0; t < pieces.front().tensors.size(); ++t) {
    ASSIGN_OR_RETURN(Shape shape, JoinedShape(pieces, t));
    const DType dtype = pieces.front().tensors[t].dtype;
    if (dtype == DType::kString) {
      ASSIGN_OR_RETURN(Buffer strings,
                       JoinStrings(pieces, t, static_cast<uint64_t>(shape.elements())));
      buffers->push_back(std::move(strings));
    } else {
      buffers->push_back(JoinFixed(pieces, t));
    }
    joined.tensors.push_back(
        {.dtype = dtype, .shape = shape, .bytes = std::as_const(buffers->back()).bytes()});
  }
  joined.keep = std::move(buffers);
  return joined;
}

}  // namespace tensord::sched
