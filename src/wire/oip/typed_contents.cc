// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/typed_contents.h"

#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "tensor/string_layout.h"
#include "wire/chars.h"
#include "wire/integers.h"
#include "wire/oip/datatype.h"

namespace tensord::wire {
namespace {

using base::WireReader;
using base::WireType;
using tensor::DType;
using tensor::Shape;
using tensor::TensorView;

constexpr uint32_t kStrings = 8;

// The field of InferTensorContents that holds the values of a dtype; 0 when there is none.
uint32_t FieldOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 1;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
      return 2;
    case DType::kInt64:
      return 3;
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
      return 4;
    case DType::kUint64:
      return 5;
    case DType::kFloat:
      return 6;
    case DType::kDouble:
      return 7;
    case DType::kString:
      return kStrings;
    default:
      return 0;
  }
}

std::string_view FieldName(uint32_t field) {
  constexpr std::string_view kNames[] = {"",
                                         "bool_contents",
                                         "int_contents",
                                         "int64_contents",
                                         "uint_contents",
                                         "uint64_contents",
                                         "fp32_contents",
                                         "fp64_contents",
                                         "bytes_contents"};
  return kNames[field];
}

absl::Status MalformedContents() {
  return absl::InvalidArgumentError("the bytes are not an inference.InferTensorContents");
}

// The values that a dtype can hold, as the varints of its field carry them.
bool InRange(DType dtype, uint64_t value) {
  const auto number = static_cast<int64_t>(value);
  const auto within = [number](int64_t low, int64_t high) {
    return number >= low && number <= high;
  };
  switch (dtype) {
    case DType::kInt8:
      return within(-128, 127);
    case DType::kUint8:
      return within(0, 255);
    case DType::kInt16:
      return within(-32768, 32767);
    case DType::kUint16:
      return within(0, 65535);
    default:
      return true;
  }
}

// What the pieces hold in the dtype's field.
struct Seen {
  uint64_t values = 0;
  uint64_t payload_bytes = 0;  // Of strings.
  uint64_t occurrences = 0;
  std::string_view last;  // The last packed list.
};

// Values in a packed list; nullopt when it is none.
std::optional<uint64_t> CountPacked(std::string_view packed, WireType type) {
  if (type == WireType::kFixed32 || type == WireType::kFixed64) {
    const size_t width = type == WireType::kFixed32 ? 4 : 8;
    if (packed.size() % width != 0) return std::nullopt;
    return packed.size() / width;
  }
  if (!packed.empty() && (static_cast<uint8_t>(packed.back()) & 0x80) != 0) return std::nullopt;
  uint64_t count = 0;
  for (const char c : packed) count += (static_cast<uint8_t>(c) & 0x80) == 0 ? 1 : 0;
  return count;
}

WireType TypeOf(uint32_t field) {
  if (field == 6) return WireType::kFixed32;
  if (field == 7) return WireType::kFixed64;
  return field == kStrings ? WireType::kBytes : WireType::kVarint;
}

// Values of another type's field would otherwise be dropped without a word.
absl::Status WrongField(uint32_t field, uint32_t came, DType dtype) {
  return absl::InvalidArgumentError(base::Cat(OipName(dtype), " values belong into ",
                                              FieldName(field), ", not ", FieldName(came)));
}

absl::StatusOr<Seen> Look(std::span<const std::string_view> pieces, uint32_t field, DType dtype) {
  Seen seen;
  for (const std::string_view piece : pieces) {
    WireReader reader(piece);
    while (reader.Next()) {
      if (reader.field() != field) {
        if (reader.field() <= kStrings) return WrongField(field, reader.field(), dtype);
        continue;
      }
      ++seen.occurrences;
      seen.last = {};
      if (field == kStrings) {
        if (reader.type() != WireType::kBytes) return MalformedContents();
        ++seen.values;
        seen.payload_bytes += reader.bytes().size();
      } else if (reader.type() == WireType::kBytes) {
        const std::optional<uint64_t> count = CountPacked(reader.bytes(), TypeOf(field));
        if (!count) return MalformedContents();
        seen.values += *count;
        seen.last = reader.bytes();
      } else if (reader.type() == TypeOf(field)) {
        ++seen.values;
      } else {
        return MalformedContents();
      }
    }
    if (!reader.ok()) return MalformedContents();
  }
  return seen;
}

absl::StatusOr<DecodedTensor> ReadStrings(const Shape& shape,
                                          std::span<const std::string_view> pieces,
                                          const Seen& seen, DecodeBudget* budget) {
  const uint64_t bytes = tensor::PackedStringBytes(seen.values, seen.payload_bytes);
  RETURN_IF_ERROR(Draw(bytes, budget));
  DecodedTensor result;
  result.owned = {DType::kString, shape, tensor::Buffer(bytes)};
  tensor::StringWriter writer(result.owned.buffer.bytes(), seen.values);
  for (const std::string_view piece : pieces) {
    WireReader reader(piece);
    while (reader.Next()) {
      if (reader.field() == kStrings) writer.Add(reader.bytes());
    }
  }
  result.view = result.owned.view();
  return result;
}

// Writes values one behind the other. REQUIRES: room for all of them.
class Sink {
 public:
  Sink(std::span<std::byte> out, DType dtype)
      : out_(out.data()), dtype_(dtype), width_(tensor::ElementBytes(dtype)) {}

  absl::Status Add(uint64_t value) {
    if (!InRange(dtype_, value)) {
      return absl::InvalidArgumentError(base::Cat("the value ", static_cast<int64_t>(value),
                                                  " is out of the range of ", OipName(dtype_)));
    }
    if (dtype_ == DType::kBool) value = value != 0 ? 1 : 0;
    std::memcpy(out_, &value, width_);
    out_ += width_;
    return absl::OkStatus();
  }

  void AddAll(std::string_view packed) {
    if (packed.empty()) return;
    std::memcpy(out_, packed.data(), packed.size());
    out_ += packed.size();
  }

 private:
  std::byte* out_;
  const DType dtype_;
  const size_t width_;
};

absl::Status AddPacked(std::string_view packed, Sink* sink) {
  while (!packed.empty()) {
    uint64_t value = 0;
    if (!base::ReadVarint(&packed, &value)) return MalformedContents();
    RETURN_IF_ERROR(sink->Add(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<DecodedTensor> ReadNumbers(DType dtype, const Shape& shape,
                                          std::span<const std::string_view> pieces,
                                          DecodeBudget* budget) {
  ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(dtype, shape));
  RETURN_IF_ERROR(Draw(bytes, budget));
  DecodedTensor result;
  result.owned = {dtype, shape, tensor::Buffer(bytes)};
  Sink sink(result.owned.buffer.bytes(), dtype);
  const uint32_t field = FieldOf(dtype);
  for (const std::string_view piece : pieces) {
    WireReader reader(piece);
    while (reader.Next()) {
      if (reader.field() != field) continue;
      if (reader.type() != WireType::kBytes) {
        RETURN_IF_ERROR(sink.Add(reader.number()));
      } else if (TypeOf(field) == WireType::kVarint) {
        RETURN_IF_ERROR(AddPacked(reader.bytes(), &sink));
      } else {
        sink.AddAll(reader.bytes());
      }
    }
  }
  result.view = result.owned.view();
  return result;
}

}  // namespace

bool HasTypedContents(DType dtype) { return FieldOf(dtype) != 0; }

absl::StatusOr<DecodedTensor> ReadTypedContents(DType dtype, const Shape& shape,
                                                std::span<const std::string_view> pieces,
                                                DecodeBudget* budget) {
  const uint32_t field = FieldOf(dtype);
  if (field == 0) {
    return absl::InvalidArgumentError(
        base::Cat(OipName(dtype), " has no typed contents; send it in raw_input_contents"));
  }
  ASSIGN_OR_RETURN(const Seen seen, Look(pieces, field, dtype));
  if (seen.values != static_cast<uint64_t>(shape.elements())) {
    return absl::InvalidArgumentError(base::Cat(FieldName(field), " holds ", seen.values,
                                                " values where shape ", shape.ToString(), " needs ",
                                                shape.elements()));
  }
  if (dtype == DType::kString) return ReadStrings(shape, pieces, seen, budget);
  const WireType type = TypeOf(field);
  if (type != WireType::kVarint && seen.occurrences == 1 && !seen.last.empty()) {
    return DecodedTensor{.view = {dtype, shape, std::as_bytes(std::span(seen.last))}, .owned = {}};
  }
  return ReadNumbers(dtype, shape, pieces, budget);
}

std::string EncodeTypedContents(const TensorView& tensor) {
  std::string out;
  if (tensor.shape.elements() == 0) return out;
  const uint32_t field = FieldOf(tensor.dtype);
  if (field == kStrings) {
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    const auto strings = tensor::StringReader::Open(tensor.bytes, elements);
    for (uint64_t i = 0; strings.ok() && i < elements; ++i) {
      base::AppendBytesField(kStrings, (*strings)[i], &out);
    }
    return out;
  }
  if (TypeOf(field) != WireType::kVarint) {
    base::AppendBytesField(field, Chars(tensor.bytes), &out);
    return out;
  }
  uint64_t bytes = 0;
  ForEachInteger(tensor, [&bytes](uint64_t value) {
    bytes += static_cast<uint64_t>(base::VarintBytes(value));
  });
  base::AppendTag(field, WireType::kBytes, &out);
  base::AppendVarint(bytes, &out);
  ForEachInteger(tensor, [&out](uint64_t value) { base::AppendVarint(value, &out); });
  return out;
}

}  // namespace tensord::wire
