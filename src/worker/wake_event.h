// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/check.h"
#include "base/unique_fd.h"

namespace tensord::worker {

// Wakes a thread that polls fd(). Threads: Set from any.
class WakeEvent {
 public:
  WakeEvent() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { TENSORD_CHECK(fd_.valid()); }

  int fd() const { return fd_.get(); }
  void Set() {
    const uint64_t one = 1;
    // Fails only when the counter is full, and then it is set.
    [[maybe_unused]] const ssize_t ignored = write(fd_.get(), &one, sizeof(one));
  }
  void Clear() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t ignored = read(fd_.get(), &count, sizeof(count));
  }

 private:
  base::UniqueFd fd_;
};

}  // namespace tensord::worker
