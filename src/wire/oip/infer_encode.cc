// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/infer_encode.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"
#include "wire/oip/datatype.h"
#include "wire/oip/raw_tensor.h"
#include "wire/oip/typed_contents.h"

namespace tensord::wire {
namespace {

using base::AppendBytesField;
using base::WireType;
using tensor::NamedTensor;

// An InferOutputTensor; without its values when they are raw.
std::string EncodeOutput(const NamedTensor& output, bool raw) {
  std::string out;
  AppendBytesField(1, output.name, &out);
  AppendBytesField(2, OipName(output.tensor.dtype), &out);
  std::string dims;
  for (const int64_t dim : output.tensor.shape.dims()) {
    base::AppendVarint(static_cast<uint64_t>(dim), &dims);
  }
  if (!dims.empty()) AppendBytesField(3, dims, &out);
  if (!raw) AppendBytesField(5, EncodeTypedContents(output.tensor), &out);
  return out;
}

}  // namespace

absl::StatusOr<std::string> EncodeOipResponse(const OipAnswered& answered,
                                              std::span<const NamedTensor> outputs, bool raw) {
  std::vector<uint64_t> sizes;
  uint64_t raw_bytes = 0;
  for (const NamedTensor& output : outputs) {
    ASSIGN_OR_RETURN(const uint64_t bytes, RawTensorBytes(output));
    sizes.push_back(bytes);
    raw_bytes += bytes;
  }
  raw |= std::any_of(outputs.begin(), outputs.end(), [](const NamedTensor& output) {
    return !HasTypedContents(output.tensor.dtype);
  });
  std::string out;
  AppendBytesField(1, answered.model, &out);
  AppendBytesField(2, base::Cat(answered.version), &out);
  if (!answered.id.empty()) AppendBytesField(3, base::ToUtf8(answered.id), &out);
  for (const NamedTensor& output : outputs) AppendBytesField(5, EncodeOutput(output, raw), &out);
  if (!raw) return out;
  constexpr size_t kHeaderBytesMax = 11;  // A tag and a length.
  out.reserve(out.size() + raw_bytes + sizes.size() * kHeaderBytesMax);
  for (size_t i = 0; i < outputs.size(); ++i) {
    base::AppendTag(6, WireType::kBytes, &out);
    base::AppendVarint(sizes[i], &out);
    AppendRawTensor(outputs[i].tensor, &out);
  }
  return out;
}

}  // namespace tensord::wire
