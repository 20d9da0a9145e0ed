// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "loop/loop_thread.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "base/unique_fd.h"

namespace tensord::loop {

void LoopThread::Flush(absl::Duration longest) {
  // Shared with the task: it may run after this has given up.
  auto done = std::make_shared<base::UniqueFd>(eventfd(0, EFD_CLOEXEC));
  if (!Run([done] { eventfd_write(done->get(), 1); })) return;
  pollfd wait{.fd = done->get(), .events = POLLIN, .revents = 0};
  (void)poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(longest)));
}

}  // namespace tensord::loop
