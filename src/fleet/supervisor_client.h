// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "channel/control.h"
#include "channel/packet_socket.h"
#include "loop/event_loop.h"

namespace tensord::fleet {

// The front's socket to its supervisor. Threads: the control loop.
class SupervisorClient {
 public:
  // `record` gets what the supervisor says, with the descriptor that rides along, if any; `gone`
  // runs once when the supervisor has ended: the front must end, too.
  using OnRecord = absl::AnyInvocable<void(const channel::ControlRecord&, base::UniqueFd)>;

  SupervisorClient(loop::EventLoop& loop, base::UniqueFd socket, OnRecord record, loop::Task gone);

  // A supervisor that is gone is noticed by the next read.
  void Send(const channel::ControlRecord& record) { (void)TrySend(record, {}); }
  // RESOURCE_EXHAUSTED: the socket is full, and nothing was sent. A copy of each descriptor goes.
  absl::Status TrySend(const channel::ControlRecord& record, const std::vector<int>& descriptors);

 private:
  void OnReadable();
  void Gone();

  channel::PacketSocket socket_;
  OnRecord record_;
  loop::Task gone_;
  loop::EventLoop::Watch watch_;
};

}  // namespace tensord::fleet
