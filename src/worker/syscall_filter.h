// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace tensord::worker {

// From now on the kernel refuses this process and its threads every system call but those that a
// runtime needs to load and run a model: no sockets beyond `channel_fd`, no exec, no new process,
// no opening for writing, no ptrace, no signals to others, and none of the newer doors (io_uring,
// bpf, userfaultfd, keyctl, pidfd). What is refused fails with EPERM or ENOSYS; nothing is killed.
// Gives the report's line.
// REQUIRES: one thread; no_new_privs is set.
std::string RestrictSystemCalls(int channel_fd);

}  // namespace tensord::worker
