// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "channel/control.h"

namespace tensord::supervisor {

// Descriptors that a front is to inherit have at least this number: above 2, and above the number
// under which it gets its socket to the supervisor.
inline constexpr int kLowestDescriptor = 10;

// The listening sockets of one event loop; -1 where that listener is off. They are non-blocking and
// bound. The UNIX sockets are given to the first loop only, as SO_REUSEPORT does not spread those,
// and so is the admin port.
struct LoopSockets {
  int grpc_fd = -1;
  int rest_fd = -1;
  int unix_fd = -1;
  int admin_fd = -1;
  int admin_unix_fd = -1;

  bool operator==(const LoopSockets&) const = default;
};

// What the supervisor leaves in the front across exec. The front must not close the listening
// sockets to stop accepting for good: the supervisor holds them too, and the next front gets them.
struct FrontSockets {
  std::vector<LoopSockets> loops;  // One entry an event loop; at least one.
  int supervisor_fd = channel::kFrontSupervisorFd;
  // The sockets are bound but do not listen yet (a client is refused): the front calls listen() on
  // each once the models are loaded. False: they listen already.
  bool listen_when_loaded = false;
  int kept_fd = -1;  // Sealed memory that the last front left (kKeep); -1: there is none.

  bool operator==(const FrontSockets&) const = default;
};

// The form on the front's command line: "4,5,-1,-1,8;6,7,-1,-1,-1", with a "+" in front when
// listen_when_loaded, and "/12" behind for what is kept.
std::string EncodeFrontSockets(const FrontSockets& sockets);
// INVALID_ARGUMENT for anything that Encode does not make.
absl::StatusOr<FrontSockets> DecodeFrontSockets(std::string_view text);

}  // namespace tensord::supervisor
