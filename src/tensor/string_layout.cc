// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tensor/string_layout.h"

#include <cstring>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"

namespace tensord::tensor {
namespace {

constexpr uint64_t kOffsetBytes = sizeof(uint64_t);

uint64_t OffsetAt(const std::byte* offsets, uint64_t i) {
  uint64_t value = 0;
  std::memcpy(&value, offsets + i * kOffsetBytes, kOffsetBytes);
  return value;
}

}  // namespace

uint64_t PackedStringBytes(uint64_t elements, uint64_t payload_bytes) {
  return (elements + 1) * kOffsetBytes + payload_bytes;
}

absl::StatusOr<StringReader> StringReader::Open(std::span<const std::byte> bytes,
                                                uint64_t elements) {
  if (elements > limits::kElementsMax || bytes.size() < PackedStringBytes(elements, 0)) {
    return absl::InvalidArgumentError(base::Cat("a string tensor of ", elements,
                                                " elements does not fit ", bytes.size(), " bytes"));
  }
  const uint64_t table_bytes = (elements + 1) * kOffsetBytes;
  const uint64_t payload_bytes = bytes.size() - table_bytes;
  uint64_t last = 0;
  for (uint64_t i = 0; i <= elements; ++i) {
    const uint64_t offset = OffsetAt(bytes.data(), i);
    if (offset < last || offset > payload_bytes || (i == 0 && offset != 0)) {
      return absl::InvalidArgumentError(base::Cat("string offset ", i, " is ", offset,
                                                  ": it steps back or leaves the payload of ",
                                                  payload_bytes, " bytes"));
    }
    last = offset;
  }
  if (last != payload_bytes) {
    return absl::InvalidArgumentError(
        base::Cat("the string offsets cover ", last, " of ", payload_bytes, " payload bytes"));
  }
  // The bytes are plain characters; a view of char over std::byte is allowed by the language.
  const char* payload = reinterpret_cast<const char*>(bytes.data() + table_bytes);
  return StringReader(bytes.data(), std::string_view(payload, payload_bytes), elements);
}

std::string_view StringReader::operator[](uint64_t i) const {
  const uint64_t begin = OffsetAt(offsets_, i);
  return payload_.substr(begin, OffsetAt(offsets_, i + 1) - begin);
}

StringWriter::StringWriter(std::span<std::byte> out, uint64_t elements)
    : out_(out), elements_(elements) {
  TENSORD_CHECK(out.size() >= PackedStringBytes(elements, 0));
  std::memset(out_.data(), 0, kOffsetBytes);
}

void StringWriter::Add(std::string_view value) {
  const uint64_t at = (elements_ + 1) * kOffsetBytes + payload_bytes_;
  TENSORD_CHECK(added_ < elements_ && value.size() <= out_.size() - at);
  if (!value.empty()) std::memcpy(out_.data() + at, value.data(), value.size());
  payload_bytes_ += value.size();
  ++added_;
  std::memcpy(out_.data() + added_ * kOffsetBytes, &payload_bytes_, kOffsetBytes);
}

}  // namespace tensord::tensor
