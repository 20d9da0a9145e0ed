// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace tensord::base {

std::string SmallFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char bytes[4096];
  for (ssize_t got = 1; fd.valid() && got > 0;) {
    got = read(fd.get(), bytes, sizeof(bytes));
    if (got < 0) return "";
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace tensord::base
