// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/pack.h"

#include <cstring>

#include "base/status_macros.h"
#include "tensor/string_layout.h"

namespace tensord::fleet {
namespace {

using Pieces = std::vector<tensor::TensorView>;

uint64_t Elements(const tensor::TensorView& piece) {
  return static_cast<uint64_t>(piece.shape.elements());
}

absl::StatusOr<tensor::Shape> JoinedShape(const Pieces& pieces) {
  if (pieces.size() == 1) return pieces.front().shape;
  int64_t rows = 0;
  for (const tensor::TensorView& piece : pieces) rows += piece.shape.dim(0);
  std::vector<int64_t> dims(pieces.front().shape.dims().begin(), pieces.front().shape.dims().end());
  dims.front() = rows;
  return tensor::Shape::Make(dims);
}

absl::StatusOr<uint64_t> JoinedBytes(const Pieces& pieces, const tensor::Shape& shape) {
  if (pieces.front().dtype != tensor::DType::kString) {
    return tensor::FixedBytes(pieces.front().dtype, shape);
  }
  uint64_t payload = 0;
  for (const tensor::TensorView& piece : pieces) {
    ASSIGN_OR_RETURN(const tensor::StringReader strings,
                     tensor::StringReader::Open(piece.bytes, Elements(piece)));
    payload += strings.payload().size();
  }
  return tensor::PackedStringBytes(static_cast<uint64_t>(shape.elements()), payload);
}

void PackStrings(const Pieces& pieces, const tensor::Shape& shape, std::span<std::byte> out) {
  tensor::StringWriter writer(out, static_cast<uint64_t>(shape.elements()));
  for (const tensor::TensorView& piece : pieces) {
    const auto strings = tensor::StringReader::Open(piece.bytes, Elements(piece));
    for (uint64_t i = 0; strings.ok() && i < strings->size(); ++i) writer.Add((*strings)[i]);
  }
}

void PackFixed(const Pieces& pieces, std::span<std::byte> out) {
  size_t at = 0;
  for (const tensor::TensorView& piece : pieces) {
    if (!piece.bytes.empty()) std::memcpy(out.data() + at, piece.bytes.data(), piece.bytes.size());
    at += piece.bytes.size();
  }
}

}  // namespace

absl::StatusOr<PackedRun> LayOut(const RunSpec& spec,
                                 std::span<const std::optional<uint64_t>> received) {
  PackedRun plan;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const Pieces& pieces = spec.inputs[i];
    PackedInput input{.dtype = pieces.front().dtype, .shape = {}, .offset = plan.bytes};
    ASSIGN_OR_RETURN(input.shape, JoinedShape(pieces));
    ASSIGN_OR_RETURN(input.bytes, JoinedBytes(pieces, input.shape));
    if (i < received.size() && received[i].has_value()) {
      input.offset = *received[i];
      input.received = true;
      plan.received_bytes += AlignTensor(input.bytes);
    } else {
      plan.bytes += AlignTensor(input.bytes);
    }
    plan.inputs.push_back(input);
  }
  return plan;
}

void Pack(const RunSpec& spec, const PackedRun& plan, std::span<std::byte> region) {
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const PackedInput& input = plan.inputs[i];
    if (input.received) continue;
    const std::span<std::byte> out = region.subspan(input.offset, input.bytes);
    if (input.dtype == tensor::DType::kString) {
      PackStrings(spec.inputs[i], input.shape, out);
    } else {
      PackFixed(spec.inputs[i], out);
    }
  }
}

}  // namespace tensord::fleet
