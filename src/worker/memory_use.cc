// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/memory_use.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace tensord::worker {

uint64_t ParsePrivateBytes(std::string_view smaps_rollup) {
  uint64_t kilobytes = 0;
  for (const std::string_view key : {"Private_Clean:", "Private_Dirty:"}) {
    const size_t at = smaps_rollup.find(key);
    if (at == std::string_view::npos) continue;
    std::string_view rest = smaps_rollup.substr(at + key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    uint64_t value = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), value);
    kilobytes += value;
  }
  return kilobytes * 1024;
}

uint64_t PrivateBytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return ParsePrivateBytes(text);
}

}  // namespace tensord::worker
