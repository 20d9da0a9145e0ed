// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "worker/layer.h"

// The rights of a process that are not about files or system calls. Each function says what it did,
// or why not.
namespace tensord::worker {

// REQUIRES of all: one thread.

// No program that this process could start would gain rights. Also forbids others to trace it and
// core dumps of it (a model's weights are somebody's property).
Layer ForbidNewPrivileges();

// No core file, no file growth, few descriptors, no locked memory; the kernel's choice when memory
// runs out, before any front.
Layer LimitResources();

// Namespaces of its own for network, IPC and host name, when it has the right to make them: a
// network without interfaces, in which there is nothing to reach. REQUIRES: before BecomeUser.
Layer LeaveNetwork();

// The user and group of that number, for this process alone, when it is root and `user` is not 0.
// Every capability goes except CAP_DAC_READ_SEARCH, with which model files that only root may read
// still load. Call DropCapabilities when they have.
Layer BecomeUser(uint32_t user);

// Asks to be killed when `supervisor` dies. False when it is not, or no longer, the parent.
// A change of user or capabilities takes this back, so it comes after BecomeUser.
bool DieWith(pid_t supervisor);

// Ends every capability in every thread of the process, and looks whether it is so.
// Threads: any; one at a time.
std::string DropCapabilities();

}  // namespace tensord::worker
