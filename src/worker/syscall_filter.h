// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "worker/layer.h"

namespace tensord::worker {

// From now on the kernel refuses this process and its threads every system call but those that a
// runtime needs to load and run a model: no sockets beyond `channel_fd`, no exec, no new process,
// no opening for writing, no ptrace, no signals to others, and none of the newer doors (io_uring,
// bpf, userfaultfd, keyctl, pidfd). What is refused fails with EPERM or ENOSYS; nothing is killed.
// REQUIRES: one thread; no_new_privs is set.
Layer RestrictSystemCalls(int channel_fd);

// From now on every thread of this process may only compute: what a warm model's runs need stays,
// naming a file fails with EACCES (one may ask whether it exists), and any other call raises
// SIGSYS, which ends the process: an ordinary run makes none, so whoever makes one is up to
// something else. REQUIRES: RestrictSystemCalls held, and this thread or those that made it called
// it.
Layer SealSystemCalls(int channel_fd);

}  // namespace tensord::worker
