// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/litert/signature_metadata.h"

#include <optional>

namespace tensord::engine {
namespace {

// FlexBuffers: google.github.io/flatbuffers/flexbuffers.html. All offsets point backwards; the root
// is at the end: its value, its packed type, its width.
constexpr uint64_t kString = 5;
constexpr uint64_t kMap = 9;
constexpr uint64_t kBlob = 25;
constexpr uint64_t kEntriesMax = 1024;

class FlexReader {
 public:
  explicit FlexReader(std::string_view bytes) : bytes_(bytes) {}

  // An unsigned number of 1, 2, 4 or 8 bytes.
  std::optional<uint64_t> Number(uint64_t at, uint64_t width) const {
    if (at > bytes_.size() || width > bytes_.size() - at) return std::nullopt;
    uint64_t value = 0;
    for (uint64_t i = width; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    }
    return value;
  }
  // Where the offset that lies at `at` points to.
  std::optional<uint64_t> Follow(uint64_t at, uint64_t width) const {
    const std::optional<uint64_t> offset = Number(at, width);
    if (!offset || *offset > at) return std::nullopt;
    return at - *offset;
  }
  std::optional<std::string> Key(uint64_t at) const {
    const size_t end = bytes_.find('\0', at);
    if (at >= bytes_.size() || end == std::string_view::npos) return std::nullopt;
    return std::string(bytes_.substr(at, end - at));
  }
  // A string or a blob, whose size lies in front.
  std::optional<std::string> Text(uint64_t at, uint64_t width) const {
    if (at < width) return std::nullopt;
    const std::optional<uint64_t> size = Number(at - width, width);
    if (!size || at > bytes_.size() || *size > bytes_.size() - at) return std::nullopt;
    return std::string(bytes_.substr(at, *size));
  }
  uint64_t size() const { return bytes_.size(); }

 private:
  const std::string_view bytes_;
};

uint64_t WidthOf(uint64_t packed) { return uint64_t{1} << (packed & 3); }

// The map whose values begin at `values`, each `width` bytes wide: in front of them lie the offset
// of the keys, their width, and the size; behind them the values' packed types.
std::optional<std::map<std::string, std::string>> ReadMap(const FlexReader& reader, uint64_t values,
                                                          uint64_t width) {
  if (values < 3 * width) return std::nullopt;
  const auto size = reader.Number(values - width, width);
  const auto key_width = reader.Number(values - 2 * width, width);
  const auto keys = reader.Follow(values - 3 * width, width);
  if (!size || !key_width || !keys || *size > kEntriesMax || *key_width > 8) return std::nullopt;
  std::map<std::string, std::string> map;
  for (uint64_t i = 0; i < *size; ++i) {
    const auto key_at = reader.Follow(*keys + i * *key_width, *key_width);
    const auto value_at = reader.Follow(values + i * width, width);
    const auto packed = reader.Number(values + *size * width + i, 1);
    if (!key_at || !value_at || !packed) return std::nullopt;
    const uint64_t type = *packed >> 2;
    if (type != kString && type != kBlob) return std::nullopt;
    auto key = reader.Key(*key_at);
    auto value = reader.Text(*value_at, WidthOf(*packed));
    if (!key || !value) return std::nullopt;
    map[*std::move(key)] = *std::move(value);
  }
  return map;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseSignatureMetadata(std::string_view bytes) {
  if (bytes.empty()) return std::map<std::string, std::string>();
  const FlexReader reader(bytes);
  const absl::Status malformed =
      absl::InvalidArgumentError("the signature definitions in the model's metadata are malformed");
  if (bytes.size() < 3) return malformed;
  const uint64_t root_width = static_cast<unsigned char>(bytes[bytes.size() - 1]);
  const uint64_t packed = static_cast<unsigned char>(bytes[bytes.size() - 2]);
  if (packed >> 2 != kMap || root_width > 8 || root_width + 2 > bytes.size()) return malformed;
  const auto values = reader.Follow(bytes.size() - 2 - root_width, root_width);
  if (!values) return malformed;
  auto map = ReadMap(reader, *values, WidthOf(packed));
  if (!map) return malformed;
  return *std::move(map);
}

}  // namespace tensord::engine
