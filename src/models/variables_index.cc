// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/variables_index.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"

namespace tensord::models {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr uint64_t kMagic = 0xdb4775248b80fb57ull;
constexpr size_t kTrailerBytes = 5;       // Compression, checksum.
constexpr uint64_t kShardsMax = 100'000;  // The number has five digits in the file's name.

absl::Status Damaged() { return absl::DataLossError("variables.index is cut short or damaged"); }

template <typename Number>
Number Little(std::string_view bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

// A block without its trailer, named by two varints at the start of *handle.
absl::StatusOr<std::string_view> ReadBlock(std::string_view index, std::string_view* handle) {
  uint64_t offset = 0;
  uint64_t size = 0;
  if (!base::ReadVarint(handle, &offset) || !base::ReadVarint(handle, &size)) return Damaged();
  if (offset > index.size() || size > index.size() - offset ||
      kTrailerBytes > index.size() - offset - size) {
    return Damaged();
  }
  if (index[offset + size] != 0) {
    return absl::UnimplementedError("variables.index holds a compressed block");
  }
  return index.substr(offset, size);
}

// Calls visit(key, value) -> Status for each entry of a block.
template <typename Visit>
absl::Status ForEach(std::string_view block, Visit visit) {
  if (block.size() < sizeof(uint32_t)) return Damaged();
  const uint64_t restarts = Little<uint32_t>(block.substr(block.size() - sizeof(uint32_t)));
  if ((restarts + 1) * sizeof(uint32_t) > block.size()) return Damaged();
  std::string_view entries = block.substr(0, block.size() - (restarts + 1) * sizeof(uint32_t));
  std::string key;
  while (!entries.empty()) {
    uint64_t shared = 0;
    uint64_t own = 0;
    uint64_t value = 0;
    const bool read = base::ReadVarint(&entries, &shared) && base::ReadVarint(&entries, &own) &&
                      base::ReadVarint(&entries, &value);
    if (!read || shared > key.size() || own > entries.size() || value > entries.size() - own) {
      return Damaged();
    }
    key.resize(shared);
    key.append(entries.substr(0, own));
    RETURN_IF_ERROR(visit(std::string_view(key), entries.substr(own, value)));
    entries.remove_prefix(own + value);
  }
  return absl::OkStatus();
}

// BundleHeaderProto: num_shards = 1.
absl::Status TakeHeader(std::string_view header, std::vector<uint64_t>* shards) {
  uint64_t count = 0;
  base::WireReader reader(header);
  while (reader.Next()) {
    if (reader.field() == 1) count = reader.number();
  }
  if (!reader.ok() || count > kShardsMax) return Damaged();
  shards->assign(count, 0);
  return absl::OkStatus();
}

// BundleEntryProto: shard_id = 3, offset = 4, size = 5; zeros are left out.
absl::Status TakeEntry(std::string_view entry, std::vector<uint64_t>* shards) {
  uint64_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  base::WireReader reader(entry);
  while (reader.Next()) {
    if (reader.field() == 3) shard = reader.number();
    if (reader.field() == 4) offset = reader.number();
    if (reader.field() == 5) size = reader.number();
  }
  if (!reader.ok() || shard >= shards->size() || offset + size < offset) return Damaged();
  (*shards)[shard] = std::max((*shards)[shard], offset + size);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ShardBytes(std::string_view index) {
  if (index.size() < kFooterBytes) return Damaged();
  std::string_view footer = index.substr(index.size() - kFooterBytes);
  if (Little<uint64_t>(footer.substr(kFooterBytes - sizeof(kMagic))) != kMagic) return Damaged();
  uint64_t unused = 0;
  if (!base::ReadVarint(&footer, &unused) || !base::ReadVarint(&footer, &unused)) return Damaged();
  ASSIGN_OR_RETURN(const std::string_view block_index, ReadBlock(index, &footer));
  std::vector<uint64_t> shards;
  bool header = false;
  RETURN_IF_ERROR(ForEach(block_index, [&](std::string_view, std::string_view handle) {
    absl::StatusOr<std::string_view> block = ReadBlock(index, &handle);
    if (!block.ok()) return block.status();
    return ForEach(*block, [&](std::string_view key, std::string_view value) {
      if (key.empty()) header = true;
      return key.empty() ? TakeHeader(value, &shards) : TakeEntry(value, &shards);
    });
  }));
  if (!header) return Damaged();
  return shards;
}

}  // namespace tensord::models
