// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// The protobuf wire format by hand: for the hot path, and for the worker, which must not link
// libprotobuf beside TensorFlow. Source: protobuf.dev/programming-guides/encoding.
namespace tensord::base {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Walks the fields of one message. Bad bytes end the walk with ok() == false.
//   for (WireReader r(bytes); r.Next();) switch (r.field()) { case 1: name = r.bytes(); ... }
// Lifetime: the bytes outlive the reader and every view it gave. Groups are refused.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Moves to the next field; false at the end or on malformed input.
  bool Next();
  bool ok() const { return ok_; }

  uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  // The value of a varint, fixed32 or fixed64 field.
  uint64_t number() const { return number_; }
  // The payload of a length-delimited field.
  std::string_view bytes() const { return bytes_; }

 private:
  bool Fail() { return ok_ = false; }

  const char* at_;
  const char* end_;
  bool ok_ = true;
  uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

// Reads one varint at the start of *bytes and drops it from there; false when cut or too long.
bool ReadVarint(std::string_view* bytes, uint64_t* value);

int VarintBytes(uint64_t value);
void AppendVarint(uint64_t value, std::string* out);
void AppendTag(uint32_t field, WireType type, std::string* out);
void AppendVarintField(uint32_t field, uint64_t value, std::string* out);
void AppendBytesField(uint32_t field, std::string_view value, std::string* out);

}  // namespace tensord::base
