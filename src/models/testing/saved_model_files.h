// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/protobuf_wire.h"

// Files with the outer form of a SavedModel, for tests that only look at them.
namespace tensord::models {

struct IndexEntry {
  std::string name;
  uint64_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

inline void AppendLittle32(uint32_t number, std::string* out) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  out->append(bytes, sizeof(bytes));
}

// One block with one restart point and its trailer.
inline std::string MakeBlock(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string block;
  for (const auto& [key, value] : entries) {
    base::AppendVarint(0, &block);
    base::AppendVarint(key.size(), &block);
    base::AppendVarint(value.size(), &block);
    block += key + value;
  }
  AppendLittle32(0, &block);
  AppendLittle32(1, &block);
  block.append(5, '\0');
  return block;
}

// A variables.index.
inline std::string MakeIndex(uint64_t shards, const std::vector<IndexEntry>& entries) {
  std::string header;
  base::AppendVarintField(1, shards, &header);
  std::vector<std::pair<std::string, std::string>> pairs = {{"", header}};
  for (const IndexEntry& entry : entries) {
    std::string value;
    base::AppendVarintField(1, 1, &value);
    if (entry.shard != 0) base::AppendVarintField(3, entry.shard, &value);
    if (entry.offset != 0) base::AppendVarintField(4, entry.offset, &value);
    base::AppendVarintField(5, entry.size, &value);
    pairs.emplace_back(entry.name, value);
  }
  auto handle = [](size_t offset, size_t bytes) {
    std::string text;
    base::AppendVarint(offset, &text);
    base::AppendVarint(bytes - 5, &text);
    return text;
  };
  const std::string data = MakeBlock(pairs);
  const std::string index = MakeBlock({{"~", handle(0, data.size())}});
  std::string footer = handle(0, data.size()) + handle(data.size(), index.size());
  footer.resize(40);
  AppendLittle32(0x8b80fb57u, &footer);
  AppendLittle32(0xdb477524u, &footer);
  return data + index + footer;
}

// Where the first block says how it is compressed.
inline size_t FirstBlockTrailer(std::string_view index) {
  // The second handle of the footer starts where the first block ends.
  std::string_view footer = index.substr(index.size() - 48);
  uint64_t offset = 0;
  uint64_t bytes = 0;
  base::ReadVarint(&footer, &offset);
  base::ReadVarint(&footer, &bytes);
  return bytes;
}

inline void WriteFile(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// saved_model.pb with one graph of so many bytes.
inline std::string MakeGraph(std::string_view contents) {
  std::string bytes;
  base::AppendVarintField(1, 1, &bytes);
  base::AppendBytesField(2, contents, &bytes);
  return bytes;
}

// A whole version directory with one shard of variables.
inline void WriteVersion(const std::filesystem::path& directory) {
  WriteFile(directory / "saved_model.pb", MakeGraph("a graph with a VarHandleOp"));
  WriteFile(directory / "variables/variables.index",
            MakeIndex(1, {{.name = "w", .shard = 0, .offset = 0, .size = 100}}));
  WriteFile(directory / "variables/variables.data-00000-of-00001", std::string(100, 'w'));
}

}  // namespace tensord::models
