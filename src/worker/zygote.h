// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <functional>

#include "channel/packet_socket.h"
#include "worker/process.h"

namespace tensord::worker {

// Forks workers when the front asks, until the front closes the socket. The process has opened the
// runtime's libraries and nothing else: one thread, no model, no key, no listener.
//
// A worker is forked twice, so that the supervisor, which is a subreaper, becomes its parent: a
// worker neither dies with its zygote nor stays behind as its zombie. `supervisor` is the zygote's
// own parent; a worker that gets another one ends itself.
// `equipment` is asked before each fork, in the zygote: what was not there may have come.
// REQUIRES: no function of the runtime was called.
// Gives the exit status of the process.
int ServeForks(const channel::PacketSocket& front, const std::function<Equipment()>& equipment,
               pid_t supervisor);

// Threads of this process, as /proc counts them; -1 when it cannot be read.
int CountThreads();

}  // namespace tensord::worker
