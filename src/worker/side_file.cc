// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/side_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "base/limits.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::worker {

absl::StatusOr<std::optional<std::string>> ReadSideFile(const std::string& directory,
                                                        std::string_view name) {
  const std::string path = base::Cat(directory, "/", name);
  // Never waits for whoever might write into a FIFO of this name.
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid() && errno == ENOENT) return std::optional<std::string>();
  const auto error = [&](int number) {
    return absl::FailedPreconditionError(base::Cat(path, ": ", std::strerror(number)));
  };
  if (!file.valid()) return error(errno);
  std::string text(limits::kSideFileBytesMax + 1, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = read(file.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error(errno);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  if (filled > limits::kSideFileBytesMax) {
    return absl::FailedPreconditionError(
        base::Cat(path, " is larger than ", limits::kSideFileBytesMax, " bytes"));
  }
  text.resize(filled);
  return std::optional(std::move(text));
}

}  // namespace tensord::worker
