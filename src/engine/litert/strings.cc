// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/strings.h"

#include <cstring>

#include "base/text.h"

namespace tensord::engine {
namespace {

constexpr uint64_t kBytesMax = INT32_MAX;

int32_t Read(std::span<const std::byte> bytes, uint64_t index) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

void Write(std::span<std::byte> bytes, uint64_t index, uint64_t value) {
  const auto narrow = static_cast<int32_t>(value);
  std::memcpy(bytes.data() + index * sizeof(narrow), &narrow, sizeof(narrow));
}

absl::Status Malformed() {
  return absl::InternalError("the model made a string tensor that is none");
}

}  // namespace

absl::StatusOr<tensor::Buffer> ToLiteStrings(const tensor::StringReader& strings) {
  const uint64_t header = (strings.size() + 2) * sizeof(int32_t);
  const uint64_t bytes = header + strings.payload().size();
  if (bytes > kBytesMax) {
    return absl::ResourceExhaustedError(base::Cat(
        "a string tensor of ", bytes, " bytes; TensorFlow Lite's have at most ", kBytesMax));
  }
  tensor::Buffer buffer(bytes);
  Write(buffer.bytes(), 0, strings.size());
  uint64_t at = header;
  for (uint64_t i = 0; i < strings.size(); ++i) {
    Write(buffer.bytes(), i + 1, at);
    at += strings[i].size();
  }
  Write(buffer.bytes(), strings.size() + 1, at);
  if (!strings.payload().empty()) {
    std::memcpy(buffer.bytes().data() + header, strings.payload().data(), strings.payload().size());
  }
  return buffer;
}

absl::StatusOr<std::vector<std::string_view>> FromLiteStrings(std::span<const std::byte> bytes,
                                                              uint64_t elements) {
  const uint64_t header = (elements + 2) * sizeof(int32_t);
  if (bytes.size() < header || Read(bytes, 0) < 0 ||
      static_cast<uint64_t>(Read(bytes, 0)) != elements) {
    return Malformed();
  }
  std::vector<std::string_view> strings;
  strings.reserve(elements);
  for (uint64_t i = 0; i < elements; ++i) {
    const int64_t begin = Read(bytes, i + 1);
    const int64_t end = Read(bytes, i + 2);
    if (begin < static_cast<int64_t>(header) || end < begin ||
        static_cast<uint64_t>(end) > bytes.size()) {
      return Malformed();
    }
    strings.emplace_back(reinterpret_cast<const char*>(bytes.data()) + begin,
                         static_cast<size_t>(end - begin));
  }
  return strings;
}

}  // namespace tensord::engine
