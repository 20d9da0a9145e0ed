// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "channel/control.h"
#include "channel/packet_socket.h"

namespace tensord::fleet {

struct ControlMessage {
  channel::ControlRecord record;
  base::UniqueFd descriptor;  // Of a kZygoteStarted.
};

absl::Status SendControl(const channel::PacketSocket& socket, const channel::ControlRecord& record,
                         const std::vector<int>& descriptors = {});
// As PacketSocket::Receive; INVALID_ARGUMENT also for what is no control record.
absl::StatusOr<ControlMessage> ReceiveControl(const channel::PacketSocket& socket);

}  // namespace tensord::fleet
