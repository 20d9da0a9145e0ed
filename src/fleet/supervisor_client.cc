// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/supervisor_client.h"

#include <sys/epoll.h>

#include <utility>

#include "fleet/control_io.h"

namespace tensord::fleet {

SupervisorClient::SupervisorClient(loop::EventLoop& loop, base::UniqueFd socket, OnRecord record,
                                   loop::Task gone)
    : socket_(std::move(socket)), record_(std::move(record)), gone_(std::move(gone)) {
  socket_.SetNonBlocking();
  watch_ = loop.Add(socket_.fd(), EPOLLIN, [this](uint32_t) { OnReadable(); });
}

absl::Status SupervisorClient::TrySend(const channel::ControlRecord& record,
                                       const std::vector<int>& descriptors) {
  return SendControl(socket_, record, descriptors);
}

void SupervisorClient::OnReadable() {
  while (watch_.active()) {
    absl::StatusOr<ControlMessage> message = ReceiveControl(socket_);
    if (absl::IsNotFound(message.status())) return;
    if (!message.ok()) return Gone();
    record_(message->record, std::move(message->descriptor));
  }
}

void SupervisorClient::Gone() {
  watch_.Reset();
  gone_();
}

}  // namespace tensord::fleet
