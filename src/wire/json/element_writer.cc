// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/element_writer.h"

#include <cstring>
#include <span>
#include <utility>

#include "base/text.h"
#include "tensor/string_layout.h"
#include "wire/json/base64.h"
#include "wire/json/cursor.h"
#include "wire/json/number.h"

namespace tensord::wire {
namespace {

using tensor::DType;

absl::Status TooLarge(uint64_t bytes, uint64_t bytes_max) {
  return absl::InvalidArgumentError(base::Cat(
      "the tensor needs ", bytes, " bytes where the request's tensors may still take ", bytes_max));
}

bool IsNumberStart(char c) { return (c >= '0' && c <= '9') || c == '-' || c == 'N' || c == 'I'; }

}  // namespace

template <typename T>
void ElementWriter::Store(T value) {
  std::memcpy(fixed_.bytes().data() + elements_ * sizeof(T), &value, sizeof(T));
  ++elements_;
}

const char* ElementWriter::Refuse(Problem problem) {
  problem_ = problem;
  return nullptr;
}

template <typename T>
const char* ElementWriter::AddReal(const char* at, const char* end) {
  T value = 0;
  const char* after = IsNumberStart(*at) ? ParseReal(at, end, &value) : nullptr;
  if (after == nullptr) return Refuse(Problem::kType);
  Store(value);
  return after;
}

template <uint16_t (*ToBits)(double)>
const char* ElementWriter::AddShortReal(const char* at, const char* end) {
  double value = 0;
  const char* after = IsNumberStart(*at) ? ParseReal(at, end, &value) : nullptr;
  if (after == nullptr) return Refuse(Problem::kType);
  Store(ToBits(value));
  return after;
}

template <typename T>
const char* ElementWriter::AddInteger(const char* at, const char* end) {
  JsonInteger integer;
  const char* after = ParseInteger(at, end, &integer);
  if (after == nullptr) return Refuse(Problem::kType);
  T value = 0;
  if (!Narrow(integer, &value)) return Refuse(Problem::kRange);
  Store(value);
  return after;
}

const char* ElementWriter::AddBool(const char* at, const char* end) {
  const std::string_view rest(at, static_cast<size_t>(end - at));
  const bool value = rest.substr(0, 4) == "true";
  if (!value && rest.substr(0, 5) != "false") return Refuse(Problem::kType);
  Store(static_cast<uint8_t>(value));
  return at + (value ? 4 : 5);
}

const char* ElementWriter::AddString(const char* at, const char* end) {
  if (*at == '{') return AddBase64(at, end);
  if (*at != '"') return Refuse(Problem::kType);
  const size_t before = payload_.size();
  const char* stop = at + 1;
  while (stop != end && *stop != '"' && *stop != '\\') ++stop;
  if (stop != end && *stop == '"') {
    payload_.append(at + 1, stop);
    ++stop;
  } else {
    JsonCursor cursor({at, static_cast<size_t>(end - at)});
    const auto value = cursor.ReadValue();
    if (!value.ok()) return Refuse(Problem::kType);
    payload_.append(UnescapeJson(value->text));
    stop = cursor.at();
  }
  string_sizes_.push_back(payload_.size() - before);
  ++elements_;
  return stop;
}

const char* ElementWriter::AddBase64(const char* at, const char* end) {
  JsonCursor cursor({at, static_cast<size_t>(end - at)});
  const auto object = cursor.ReadValue();
  const std::string_view quoted = object.ok() ? Base64Member(object->text) : std::string_view();
  if (quoted.empty()) return Refuse(Problem::kBase64Object);
  const std::string_view inside = quoted.substr(1, quoted.size() - 2);
  const size_t before = payload_.size();
  // "\/" is an escape that some encoders put into base64.
  const bool escaped = inside.find('\\') != std::string_view::npos;
  if (!AppendBase64Decoded(escaped ? UnescapeJson(quoted) : inside, &payload_)) {
    return Refuse(Problem::kBase64);
  }
  string_sizes_.push_back(payload_.size() - before);
  ++elements_;
  return cursor.at();
}

const char* ElementWriter::AddNothing(const char*, const char*) {
  return Refuse(Problem::kUnimplemented);
}

ElementWriter::AddFunction ElementWriter::AddFunctionOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return &ElementWriter::AddReal<float>;
    case DType::kDouble:
      return &ElementWriter::AddReal<double>;
    case DType::kHalf:
      return &ElementWriter::AddShortReal<HalfBits>;
    case DType::kBfloat16:
      return &ElementWriter::AddShortReal<Bfloat16Bits>;
    case DType::kInt8:
      return &ElementWriter::AddInteger<int8_t>;
    case DType::kInt16:
      return &ElementWriter::AddInteger<int16_t>;
    case DType::kInt32:
      return &ElementWriter::AddInteger<int32_t>;
    case DType::kInt64:
      return &ElementWriter::AddInteger<int64_t>;
    case DType::kUint8:
      return &ElementWriter::AddInteger<uint8_t>;
    case DType::kUint16:
      return &ElementWriter::AddInteger<uint16_t>;
    case DType::kUint32:
      return &ElementWriter::AddInteger<uint32_t>;
    case DType::kUint64:
      return &ElementWriter::AddInteger<uint64_t>;
    case DType::kBool:
      return &ElementWriter::AddBool;
    case DType::kString:
      return &ElementWriter::AddString;
    default:
      return &ElementWriter::AddNothing;
  }
}

template <typename T>
const char* ElementWriter::AddNestOf(const char* at, const char* end, NumberNest* nest) {
  const std::span<std::byte> room = fixed_.bytes().subspan(elements_ * sizeof(T));
  const char* const after = ReadNumberNest<T>(at, end, room, nest);
  if (after != nullptr) elements_ += nest->elements;
  return after;
}

ElementWriter::AddNestFunction ElementWriter::AddNestFunctionOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return &ElementWriter::AddNestOf<float>;
    case DType::kDouble:
      return &ElementWriter::AddNestOf<double>;
    case DType::kInt8:
      return &ElementWriter::AddNestOf<int8_t>;
    case DType::kInt16:
      return &ElementWriter::AddNestOf<int16_t>;
    case DType::kInt32:
      return &ElementWriter::AddNestOf<int32_t>;
    case DType::kInt64:
      return &ElementWriter::AddNestOf<int64_t>;
    case DType::kUint8:
      return &ElementWriter::AddNestOf<uint8_t>;
    case DType::kUint16:
      return &ElementWriter::AddNestOf<uint16_t>;
    case DType::kUint32:
      return &ElementWriter::AddNestOf<uint32_t>;
    case DType::kUint64:
      return &ElementWriter::AddNestOf<uint64_t>;
    default:
      return nullptr;
  }
}

absl::StatusOr<ElementWriter> ElementWriter::Make(DType dtype, uint64_t elements_max,
                                                  uint64_t bytes_max) {
  const uint64_t element_bytes =
      dtype == DType::kString ? sizeof(uint64_t) : tensor::ElementBytes(dtype);
  if (element_bytes > 0 && elements_max > bytes_max / element_bytes) {
    return TooLarge(elements_max * element_bytes, bytes_max);
  }
  ElementWriter writer(dtype, elements_max);
  writer.add_ = AddFunctionOf(dtype);
  writer.add_nest_ = AddNestFunctionOf(dtype);
  if (dtype != DType::kString) writer.fixed_ = tensor::Buffer(elements_max * element_bytes);
  return writer;
}

absl::StatusOr<tensor::Tensor> ElementWriter::Finish(const tensor::Shape& shape,
                                                     uint64_t bytes_max) && {
  const size_t bytes = dtype_ == DType::kString
                           ? tensor::PackedStringBytes(elements_, payload_.size())
                           : elements_ * tensor::ElementBytes(dtype_);
  if (bytes > bytes_max) return TooLarge(bytes, bytes_max);
  tensor::Tensor tensor{dtype_, shape, {}};
  if (dtype_ != DType::kString && fixed_.size() == bytes) {
    tensor.buffer = std::move(fixed_);
    return tensor;
  }
  tensor.buffer = tensor::Buffer(bytes);
  if (dtype_ != DType::kString) {  // Fewer elements than there was room for: empty lists.
    if (bytes > 0) std::memcpy(tensor.buffer.bytes().data(), fixed_.bytes().data(), bytes);
    return tensor;
  }
  tensor::StringWriter writer(tensor.buffer.bytes(), elements_);
  std::string_view rest = payload_;
  for (const uint64_t size : string_sizes_) {
    writer.Add(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return tensor;
}

}  // namespace tensord::wire
