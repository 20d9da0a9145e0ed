// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/control_io.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "base/status_macros.h"

namespace tensord::fleet {

absl::Status SendControl(const channel::PacketSocket& socket, const channel::ControlRecord& record,
                         const std::vector<int>& descriptors) {
  // The record travels as it lies in memory: see control.h.
  const std::string_view bytes(reinterpret_cast<const char*>(&record), sizeof(record));
  return socket.Send(bytes, descriptors);
}

absl::StatusOr<ControlMessage> ReceiveControl(const channel::PacketSocket& socket) {
  ASSIGN_OR_RETURN(channel::Packet packet, socket.Receive(sizeof(channel::ControlRecord), 1));
  ControlMessage message;
  if (packet.bytes.size() != sizeof(message.record)) {
    return absl::InvalidArgumentError("a control record of another size");
  }
  std::memcpy(&message.record, packet.bytes.data(), sizeof(message.record));
  if (message.record.magic != channel::kControlMagic) {
    return absl::InvalidArgumentError("a control record of another build");
  }
  if (!packet.descriptors.empty()) message.descriptor = std::move(packet.descriptors.front());
  return message;
}

}  // namespace tensord::fleet
