// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/protobuf_wire.h"

#include <cstring>

namespace tensord::base {

bool ReadVarint(std::string_view* bytes, uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      if (i == 9 && byte > 1) return false;  // More than 64 bits.
      *value = result;
      bytes->remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool WireReader::Next() {
  if (!ok_ || at_ == end_) return false;
  std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  uint64_t tag = 0;
  if (!ReadVarint(&rest, &tag) || tag > UINT32_MAX || (tag >> 3) == 0) return Fail();
  field_ = static_cast<uint32_t>(tag >> 3);
  number_ = 0;
  bytes_ = {};
  switch (tag & 7) {
    case 0:
      type_ = WireType::kVarint;
      if (!ReadVarint(&rest, &number_)) return Fail();
      break;
    case 1:
      type_ = WireType::kFixed64;
      if (rest.size() < 8) return Fail();
      std::memcpy(&number_, rest.data(), 8);
      rest.remove_prefix(8);
      break;
    case 2: {
      type_ = WireType::kBytes;
      uint64_t size = 0;
      if (!ReadVarint(&rest, &size) || size > rest.size()) return Fail();
      bytes_ = rest.substr(0, size);
      rest.remove_prefix(size);
      break;
    }
    case 5: {
      type_ = WireType::kFixed32;
      if (rest.size() < 4) return Fail();
      uint32_t value = 0;
      std::memcpy(&value, rest.data(), 4);
      number_ = value;
      rest.remove_prefix(4);
      break;
    }
    default:
      return Fail();
  }
  at_ = rest.data();
  return true;
}

int VarintBytes(uint64_t value) {
  int bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendTag(uint32_t field, WireType type, std::string* out) {
  AppendVarint((static_cast<uint64_t>(field) << 3) | static_cast<uint64_t>(type), out);
}

void AppendVarintField(uint32_t field, uint64_t value, std::string* out) {
  AppendTag(field, WireType::kVarint, out);
  AppendVarint(value, out);
}

void AppendBytesField(uint32_t field, std::string_view value, std::string* out) {
  AppendTag(field, WireType::kBytes, out);
  AppendVarint(value.size(), out);
  out->append(value);
}

}  // namespace tensord::base
