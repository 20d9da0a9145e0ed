// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/process_memory.h"

#include <fcntl.h>

#include <array>
#include <charconv>

#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::serve {

std::optional<uint64_t> ParsePss(std::string_view smaps_rollup) {
  constexpr std::string_view kKey = "\nPss:";
  size_t at = smaps_rollup.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  at = smaps_rollup.find_first_not_of(' ', at + kKey.size());
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t kilobytes = 0;
  const char* end = smaps_rollup.data() + smaps_rollup.size();
  if (std::from_chars(smaps_rollup.data() + at, end, kilobytes).ec != std::errc()) {
    return std::nullopt;
  }
  return kilobytes * 1024;
}

std::optional<uint64_t> PssBytes(int pid) {
  const std::string path = base::Cat("/proc/", pid, "/smaps_rollup");
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::array<char, 4096> text;  // The file is about 700 bytes.
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  return ParsePss({text.data(), static_cast<size_t>(size)});
}

}  // namespace tensord::serve
