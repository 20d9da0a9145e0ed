// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

// The packed form of a string tensor with n elements:
//   n + 1 uint64 offsets, little-endian, counted from the first payload byte; the first is 0, each
//   is >= the one before, the last is the payload's size;
//   the payload: all strings, one after the other.
namespace tensord::tensor {

// Bytes of the packed form.
uint64_t PackedStringBytes(uint64_t elements, uint64_t payload_bytes);

// Reads a checked packed form. Lifetime: the bytes outlive the reader.
class StringReader {
 public:
  // INVALID_ARGUMENT when offsets step back, leave the payload, or the size does not fit.
  static absl::StatusOr<StringReader> Open(std::span<const std::byte> bytes, uint64_t elements);

  uint64_t size() const { return elements_; }
  std::string_view operator[](uint64_t i) const;
  std::string_view payload() const { return payload_; }

 private:
  StringReader(const std::byte* offsets, std::string_view payload, uint64_t elements)
      : offsets_(offsets), payload_(payload), elements_(elements) {}

  const std::byte* offsets_;
  std::string_view payload_;
  uint64_t elements_;
};

// Writes a packed form, element by element, into a buffer of PackedStringBytes(elements, payload).
// REQUIRES: exactly `elements` calls of Add, whose sizes sum to what the buffer holds.
class StringWriter {
 public:
  StringWriter(std::span<std::byte> out, uint64_t elements);
  void Add(std::string_view value);

 private:
  std::span<std::byte> out_;
  uint64_t elements_;
  uint64_t added_ = 0;
  uint64_t payload_bytes_ = 0;
};

}  // namespace tensord::tensor
