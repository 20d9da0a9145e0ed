// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "supervisor/front_sockets.h"
#include "supervisor/spawn.h"

// The process that a user starts: parent of front, zygotes and, as a subreaper, of every worker.
// One thread, no network traffic, no TensorFlow; fit to be PID 1.
namespace tensord::supervisor {

struct Setup {
  Program front;  // `sockets` becomes its last argument.
  FrontSockets sockets;
  std::vector<int> front_descriptors;  // The listening sockets.
  Program zygote;                      // Its environment is completed for each runtime.
  Program litert_zygote;               // Of TensorFlow Lite models; likewise.
  absl::Duration drain;                // Lame duck and drain time together.
  std::vector<std::string> ready;      // Log lines for the moment when the front is ready.
  std::string notify_socket;           // $NOTIFY_SOCKET of a service manager; empty: none.
};

// Runs until all is over, and gives the exit code of the process: see Supervision. Takes SIGTERM,
// SIGINT, SIGHUP and SIGCHLD for itself. INTERNAL when the kernel refuses what is needed to begin.
// Children that this process has already (of whoever exec'd it) are reaped and otherwise left
// alone. REQUIRES: called once, in the only thread of the process.
absl::StatusOr<int> Supervise(const Setup& setup);

}  // namespace tensord::supervisor
