// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/raw_tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "tensor/string_layout.h"
#include "wire/chars.h"
#include "wire/oip/datatype.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::TensorView;

constexpr size_t kLengthBytes = sizeof(uint32_t);

// Takes the next string off the front of *bytes; false when it is cut.
bool TakeString(std::string_view* bytes, std::string_view* value) {
  uint32_t size = 0;
  if (bytes->size() < kLengthBytes) return false;
  std::memcpy(&size, bytes->data(), kLengthBytes);
  bytes->remove_prefix(kLengthBytes);
  if (bytes->size() < size) return false;
  *value = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

absl::Status BadStrings(uint64_t elements, size_t bytes) {
  return absl::InvalidArgumentError(
      base::Cat("the ", bytes, " bytes are not ", elements,
                " strings, each behind four bytes with its length (little-endian)"));
}

absl::StatusOr<DecodedTensor> ReadStrings(const Shape& shape, std::string_view bytes,
                                          DecodeBudget* budget) {
  const auto elements = static_cast<uint64_t>(shape.elements());
  if (elements > bytes.size() / kLengthBytes) return BadStrings(elements, bytes.size());
  std::string_view rest = bytes;
  std::string_view value;
  for (uint64_t i = 0; i < elements; ++i) {
    if (!TakeString(&rest, &value)) return BadStrings(elements, bytes.size());
  }
  if (!rest.empty()) return BadStrings(elements, bytes.size());
  const uint64_t size = tensor::PackedStringBytes(elements, bytes.size() - elements * kLengthBytes);
  if (size > limits::kTensorBytesMax) {
    return absl::InvalidArgumentError(
        base::Cat("the tensor needs ", size, " bytes; the limit is ", limits::kTensorBytesMax));
  }
  RETURN_IF_ERROR(Draw(size, budget));
  DecodedTensor result;
  result.owned = {DType::kString, shape, tensor::Buffer(size)};
  tensor::StringWriter writer(result.owned.buffer.bytes(), elements);
  rest = bytes;
  for (uint64_t i = 0; i < elements; ++i) {
    TakeString(&rest, &value);
    writer.Add(value);
  }
  result.view = result.owned.view();
  return result;
}

bool IsPackedBool(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 2; });
}

}  // namespace

absl::StatusOr<DecodedTensor> ReadRawTensor(DType dtype, const Shape& shape, std::string_view bytes,
                                            DecodeBudget* budget) {
  if (dtype == DType::kString) return ReadStrings(shape, bytes, budget);
  ASSIGN_OR_RETURN(const uint64_t wanted, tensor::FixedBytes(dtype, shape));
  if (bytes.size() != wanted) {
    return absl::InvalidArgumentError(base::Cat("there are ", bytes.size(), " bytes where ",
                                                OipName(dtype), " of shape ", shape.ToString(),
                                                " needs ", wanted));
  }
  DecodedTensor result{.view = {dtype, shape, std::as_bytes(std::span(bytes))}, .owned = {}};
  if (dtype != DType::kBool || IsPackedBool(bytes)) return result;
  RETURN_IF_ERROR(Draw(wanted, budget));
  result.owned = {dtype, shape, tensor::Buffer(wanted)};
  const std::span<std::byte> out = result.owned.buffer.bytes();
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::byte{bytes[i] != 0};
  result.view = result.owned.view();
  return result;
}

absl::Status CheckOipOutput(const tensor::NamedTensor& output) {
  const TensorView& tensor = output.tensor;
  if (OipName(tensor.dtype).empty()) {
    return absl::UnimplementedError(
        base::Cat("output \"", output.name, "\" is ", tensor::DTypeName(tensor.dtype),
                  ", which the Open Inference Protocol has no datatype for; name other outputs"));
  }
  if (tensor.shape.elements() == 0) return absl::OkStatus();
  absl::Status problem;
  if (tensor.dtype == DType::kString) {
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    problem = tensor::StringReader::Open(tensor.bytes, elements).status();
  } else {
    ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(tensor.dtype, tensor.shape));
    if (bytes != tensor.bytes.size()) {
      problem = absl::InternalError(
          base::Cat(tensor.bytes.size(), " bytes for shape ", tensor.shape.ToString()));
    }
  }
  if (problem.ok()) return problem;
  return absl::InternalError(base::Cat("the worker's output \"", output.name,
                                       "\" is malformed: ", base::Message(problem)));
}

absl::StatusOr<uint64_t> RawTensorBytes(const tensor::NamedTensor& output) {
  RETURN_IF_ERROR(CheckOipOutput(output));
  const TensorView& tensor = output.tensor;
  const auto elements = static_cast<uint64_t>(tensor.shape.elements());
  if (elements == 0) return 0;
  if (tensor.dtype != DType::kString) return tensor.bytes.size();
  ASSIGN_OR_RETURN(const tensor::StringReader strings,
                   tensor::StringReader::Open(tensor.bytes, elements));
  for (uint64_t i = 0; i < elements; ++i) {
    if (strings[i].size() > std::numeric_limits<uint32_t>::max()) {
      return absl::InternalError(
          base::Cat("output \"", output.name, "\" holds a string of more than 4 GiB"));
    }
  }
  return elements * kLengthBytes + strings.payload().size();
}

void AppendRawTensor(const TensorView& tensor, std::string* out) {
  const auto elements = static_cast<uint64_t>(tensor.shape.elements());
  if (elements == 0) return;
  if (tensor.dtype == DType::kString) {
    const auto strings = tensor::StringReader::Open(tensor.bytes, elements);
    for (uint64_t i = 0; strings.ok() && i < elements; ++i) {
      const std::string_view value = (*strings)[i];
      const auto size = static_cast<uint32_t>(value.size());
      char length[kLengthBytes];
      std::memcpy(length, &size, kLengthBytes);
      out->append(length, kLengthBytes);
      out->append(value);
    }
  } else if (tensor.dtype == DType::kBool) {
    for (const std::byte value : tensor.bytes) out->push_back(value != std::byte{0} ? 1 : 0);
  } else {
    out->append(Chars(tensor.bytes));
  }
}

}  // namespace tensord::wire
