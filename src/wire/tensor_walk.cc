// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/tensor_walk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "tensor/string_layout.h"

namespace tensord::wire {
namespace {

using base::WireReader;
using base::WireType;
using tensor::DType;
using tensor::Shape;

static_assert(std::endian::native == std::endian::little, "the packed form is little-endian");

// The value field of a dtype (tensorflow/core/framework/tensor.proto).
struct ValueField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;  // Of one unpacked value.
  size_t value_bytes = 0;             // In the packed form; 0 for strings.
  uint64_t values_per_element = 1;    // 2 for complex numbers.
};

std::optional<ValueField> ValueFieldOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return ValueField{5, WireType::kFixed32, 4};
    case DType::kDouble:
      return ValueField{6, WireType::kFixed64, 8};
    case DType::kInt32:
      return ValueField{7, WireType::kVarint, 4};
    case DType::kInt16:
    case DType::kUint16:
      return ValueField{7, WireType::kVarint, 2};
    case DType::kInt8:
    case DType::kUint8:
      return ValueField{7, WireType::kVarint, 1};
    case DType::kString:
      return ValueField{8, WireType::kBytes, 0};
    case DType::kComplex64:
      return ValueField{9, WireType::kFixed32, 4, 2};
    case DType::kInt64:
      return ValueField{10, WireType::kVarint, 8};
    case DType::kBool:
      return ValueField{11, WireType::kVarint, 1};
    case DType::kComplex128:
      return ValueField{12, WireType::kFixed64, 8, 2};
    case DType::kHalf:
    case DType::kBfloat16:
      return ValueField{13, WireType::kVarint, 2};
    case DType::kUint32:
      return ValueField{16, WireType::kVarint, 4};
    case DType::kUint64:
      return ValueField{17, WireType::kVarint, 8};
    default:
      return std::nullopt;
  }
}

constexpr uint32_t kValueFieldsEnd = 18;

// What was seen of one repeated value field.
struct Seen {
  uint64_t occurrences = 0;
  uint64_t payload_bytes = 0;  // Of all occurrences; at least one byte a numeric value.
  std::string_view last;       // The last length-delimited occurrence: packed values or a string.
};

// A first walk over the message: all but the values themselves.
struct Fields {
  uint64_t dtype = 0;
  std::array<int64_t, limits::kRankMax> dims{};
  size_t rank = 0;
  std::string_view content;
  std::array<Seen, kValueFieldsEnd> values;
};

absl::Status MalformedTensor(std::string_view message) {
  return absl::InvalidArgumentError(base::Cat("the bytes are not a ", message));
}

absl::Status WalkShape(std::string_view bytes, Fields* fields) {
  WireReader shape(bytes);
  while (shape.Next()) {
    if (shape.field() != 2 || shape.type() != WireType::kBytes) continue;
    if (fields->rank == fields->dims.size()) {
      return absl::InvalidArgumentError(
          base::Cat("the rank is above the limit of ", limits::kRankMax));
    }
    int64_t size = 0;
    WireReader dim(shape.bytes());
    while (dim.Next()) {
      if (dim.field() == 1 && dim.type() == WireType::kVarint) {
        size = static_cast<int64_t>(dim.number());
      }
    }
    if (!dim.ok()) return MalformedTensor("TensorShapeProto.Dim");
    fields->dims[fields->rank++] = size;
  }
  return shape.ok() ? absl::OkStatus() : MalformedTensor("TensorShapeProto");
}

void Note(const WireReader& reader, Seen* seen) {
  ++seen->occurrences;
  if (reader.type() == WireType::kBytes) {
    seen->payload_bytes += reader.bytes().size();
    seen->last = reader.bytes();
  } else {
    seen->payload_bytes += 1;
    seen->last = {};
  }
}

absl::Status Walk(std::string_view bytes, Fields* fields) {
  WireReader reader(bytes);
  while (reader.Next()) {
    const uint32_t field = reader.field();
    if (field == 1 && reader.type() == WireType::kVarint) {
      fields->dtype = reader.number();
    } else if (field == 2 && reader.type() == WireType::kBytes) {
      RETURN_IF_ERROR(WalkShape(reader.bytes(), fields));
    } else if (field == 4 && reader.type() == WireType::kBytes) {
      fields->content = reader.bytes();
    } else if (field >= 5 && field < kValueFieldsEnd) {
      Note(reader, &fields->values[field]);
    }
  }
  return reader.ok() ? absl::OkStatus() : MalformedTensor("TensorProto");
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// Filling asks for memory that a few bytes on the wire do not justify.
absl::Status DrawFill(uint64_t filled_bytes, DecodeBudget* budget) {
  if (filled_bytes > budget->filled_bytes) {
    return absl::InvalidArgumentError(
        base::Cat("the values given leave ", filled_bytes,
                  " bytes to be filled with the last one, where the request may still fill ",
                  budget->filled_bytes, ": send all values"));
  }
  budget->filled_bytes -= filled_bytes;
  return absl::OkStatus();
}

// Writes the values of one numeric field, in wire order, until the tensor is full.
class ValueSink {
 public:
  ValueSink(std::span<std::byte> out, const ValueField& field, bool is_bool)
      : out_(out), field_(field), is_bool_(is_bool) {}

  absl::Status Add(std::string_view piece) {
    WireReader reader(piece);
    while (reader.Next()) {
      if (reader.field() != field_.number) continue;
      if (reader.type() == field_.type) {
        Store(reader.number());
      } else if (reader.type() == WireType::kBytes) {
        RETURN_IF_ERROR(AddPacked(reader.bytes()));
      }
    }
    return absl::OkStatus();
  }

  // Whole elements written, then fills the rest with the last one, or with zeros.
  void Fill() {
    const size_t element_bytes = field_.value_bytes * field_.values_per_element;
    size_t at = written_ / element_bytes * element_bytes;
    if (at == 0) {
      std::memset(out_.data(), 0, out_.size());
      return;
    }
    for (; at < out_.size(); at += element_bytes) {
      std::memcpy(out_.data() + at, out_.data() + at - element_bytes, element_bytes);
    }
  }

 private:
  absl::Status AddPacked(std::string_view packed) {
    if (field_.type != WireType::kVarint) {
      if (packed.size() % field_.value_bytes != 0) return MalformedTensor("list of packed values");
      const size_t bytes = std::min(packed.size(), out_.size() - written_);
      if (bytes > 0) std::memcpy(out_.data() + written_, packed.data(), bytes);
      written_ += bytes;
      return absl::OkStatus();
    }
    while (!packed.empty()) {
      uint64_t value = 0;
      if (!base::ReadVarint(&packed, &value)) return MalformedTensor("list of packed values");
      Store(value);
    }
    return absl::OkStatus();
  }

  // The low bytes of a varint are the narrower integer: the cast that TensorFlow makes.
  void Store(uint64_t value) {
    if (written_ == out_.size()) return;
    if (is_bool_) value = value != 0 ? 1 : 0;
    std::memcpy(out_.data() + written_, &value, field_.value_bytes);
    written_ += field_.value_bytes;
  }

  std::span<std::byte> out_;
  const ValueField& field_;
  bool is_bool_;
  size_t written_ = 0;
};

bool AllBelow(std::string_view bytes, uint8_t limit) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [limit](char c) { return static_cast<uint8_t>(c) < limit; });
}

// True when the only occurrence of the value field is already the packed form.
bool IsPackedForm(const Seen& seen, const ValueField& field, DType dtype, uint64_t bytes) {
  if (seen.occurrences != 1 || seen.last.size() != bytes) return false;
  if (field.type != WireType::kVarint) return true;
  // One-byte varints are the bytes themselves.
  return field.value_bytes == 1 && AllBelow(seen.last, dtype == DType::kBool ? 2 : 0x80);
}

absl::StatusOr<DecodedTensor> FromContent(DType dtype, const Shape& shape, std::string_view content,
                                          uint64_t bytes, DecodeBudget* budget) {
  if (content.size() != bytes) {
    return absl::InvalidArgumentError(
        base::Cat("tensor_content holds ", content.size(), " bytes where a ", DTypeName(dtype),
                  " tensor of shape ", shape.ToString(), " needs ", bytes));
  }
  DecodedTensor result{.view = {dtype, shape, BytesOf(content)}, .owned = {}};
  if (dtype != DType::kBool || AllBelow(content, 2)) return result;
  RETURN_IF_ERROR(Draw(bytes, budget));
  result.owned = {dtype, shape, tensor::Buffer(bytes)};
  std::span<std::byte> out = result.owned.buffer.bytes();
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::byte{content[i] != 0};
  result.view = result.owned.view();
  return result;
}

absl::StatusOr<DecodedTensor> FixedWidth(std::span<const std::string_view> pieces,
                                         const Fields& fields, const Shape& shape,
                                         DecodeBudget* budget) {
  const auto dtype = static_cast<DType>(fields.dtype);
  const ValueField field = *ValueFieldOf(dtype);
  ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(dtype, shape));
  if (bytes > 0 && !fields.content.empty()) {
    return FromContent(dtype, shape, fields.content, bytes, budget);
  }
  const Seen& seen = fields.values[field.number];
  if (IsPackedForm(seen, field, dtype, bytes)) {
    return DecodedTensor{.view = {dtype, shape, BytesOf(seen.last)}, .owned = {}};
  }
  const uint64_t brought = seen.payload_bytes * sizeof(uint64_t);  // Never below what is written.
  RETURN_IF_ERROR(DrawFill(bytes > brought ? bytes - brought : 0, budget));
  RETURN_IF_ERROR(Draw(bytes, budget));
  DecodedTensor result;
  result.owned = {dtype, shape, tensor::Buffer(bytes)};
  ValueSink sink(result.owned.buffer.bytes(), field, dtype == DType::kBool);
  for (const std::string_view piece : pieces) RETURN_IF_ERROR(sink.Add(piece));
  if (bytes > 0) sink.Fill();
  result.view = result.owned.view();
  return result;
}

absl::StatusOr<DecodedTensor> EmptyStrings(const Shape& shape, uint64_t payload_bytes,
                                           DecodeBudget* budget) {
  const auto elements = static_cast<uint64_t>(shape.elements());
  const uint64_t bytes = tensor::PackedStringBytes(elements, payload_bytes);
  if (bytes > limits::kTensorBytesMax) {
    return absl::InvalidArgumentError(base::Cat("a string tensor of shape ", shape.ToString(),
                                                " needs ", bytes, " bytes; the limit is ",
                                                limits::kTensorBytesMax));
  }
  RETURN_IF_ERROR(Draw(bytes, budget));
  DecodedTensor result;
  result.owned = {DType::kString, shape, tensor::Buffer(bytes)};
  result.view = result.owned.view();
  return result;
}

// tensor_content of strings: all lengths as varints, then all bytes.
absl::StatusOr<DecodedTensor> StringsFromContent(const Shape& shape, std::string_view content,
                                                 DecodeBudget* budget) {
  const auto elements = static_cast<uint64_t>(shape.elements());
  std::string_view rest = content;
  uint64_t payload_bytes = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    uint64_t size = 0;
    if (!base::ReadVarint(&rest, &size) || size > content.size()) {
      return absl::InvalidArgumentError(
          base::Cat("tensor_content does not hold the lengths of ", elements, " strings"));
    }
    payload_bytes += size;
  }
  if (payload_bytes != rest.size()) {
    return absl::InvalidArgumentError(base::Cat(
        "tensor_content holds ", rest.size(), " bytes behind lengths that sum to ", payload_bytes));
  }
  ASSIGN_OR_RETURN(DecodedTensor result, EmptyStrings(shape, payload_bytes, budget));
  tensor::StringWriter writer(result.owned.buffer.bytes(), elements);
  std::string_view lengths = content;
  for (uint64_t i = 0; i < elements; ++i) {
    uint64_t size = 0;
    base::ReadVarint(&lengths, &size);
    writer.Add(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return result;
}

// Calls visit(value) for the first `count` values of string_val.
template <typename Visit>
void ForEachString(std::span<const std::string_view> pieces, uint64_t count, Visit visit) {
  for (const std::string_view piece : pieces) {
    WireReader reader(piece);
    while (count > 0 && reader.Next()) {
      if (reader.field() != 8 || reader.type() != WireType::kBytes) continue;
      visit(reader.bytes());
      --count;
    }
  }
}

absl::StatusOr<DecodedTensor> Strings(std::span<const std::string_view> pieces,
                                      const Fields& fields, const Shape& shape,
                                      DecodeBudget* budget) {
  const auto elements = static_cast<uint64_t>(shape.elements());
  if (elements > 0 && !fields.content.empty()) {
    return StringsFromContent(shape, fields.content, budget);
  }
  uint64_t given = 0;
  uint64_t payload_bytes = 0;
  std::string_view last;
  ForEachString(pieces, elements, [&](std::string_view value) {
    ++given;
    payload_bytes += value.size();
    last = value;
  });
  const uint64_t missing = elements - given;
  // Below 2^62: an element count and a length inside one message.
  RETURN_IF_ERROR(DrawFill(missing * std::max<uint64_t>(last.size(), sizeof(uint64_t)), budget));
  payload_bytes += missing * last.size();
  ASSIGN_OR_RETURN(DecodedTensor result, EmptyStrings(shape, payload_bytes, budget));
  tensor::StringWriter writer(result.owned.buffer.bytes(), elements);
  ForEachString(pieces, elements, [&](std::string_view value) { writer.Add(value); });
  for (uint64_t i = 0; i < missing; ++i) writer.Add(last);
  return result;
}

absl::Status CheckDType(uint64_t number) {
  if (number <= static_cast<uint64_t>(DType::kUint64)) {
    const auto dtype = static_cast<DType>(number);
    if (tensor::IsServable(dtype)) return absl::OkStatus();
    if (dtype != DType::kInvalid) {
      return absl::InvalidArgumentError(
          base::Cat("dtype ", DTypeName(dtype), " cannot be sent in a request"));
    }
    return absl::InvalidArgumentError("the dtype is not set");
  }
  return absl::InvalidArgumentError(
      base::Cat("dtype number ", static_cast<int64_t>(number), " is not known"));
}

}  // namespace

absl::Status Draw(uint64_t bytes, DecodeBudget* budget) {
  if (bytes > budget->bytes) {
    return absl::InvalidArgumentError(
        base::Cat("decoding needs ", bytes, " bytes where the request's tensors may still take ",
                  budget->bytes));
  }
  budget->bytes -= bytes;
  return absl::OkStatus();
}

absl::StatusOr<DecodedTensor> DecodeTensor(std::span<const std::string_view> pieces,
                                           DecodeBudget* budget) {
  Fields fields;
  for (const std::string_view piece : pieces) RETURN_IF_ERROR(Walk(piece, &fields));
  RETURN_IF_ERROR(CheckDType(fields.dtype));
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make({fields.dims.data(), fields.rank}));
  if (static_cast<DType>(fields.dtype) == DType::kString) {
    return Strings(pieces, fields, shape, budget);
  }
  return FixedWidth(pieces, fields, shape, budget);
}

}  // namespace tensord::wire
