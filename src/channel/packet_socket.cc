// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "channel/packet_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/limits.h"

namespace tensord::channel {
namespace {

constexpr size_t kDescriptorsMax = 8;  // A fork request carries five; nothing carries more.

absl::Status SocketError(const char* call) {
  switch (errno) {
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
      return absl::UnavailableError("the peer is gone");
    case EAGAIN:
    case ENOBUFS:
      return absl::ResourceExhaustedError("the socket's buffer is full");
    case EMSGSIZE:
      return absl::InvalidArgumentError("the record is larger than the socket takes");
    default:
      return absl::InternalError(std::string(call) + ": " + std::strerror(errno));
  }
}

}  // namespace

absl::StatusOr<std::pair<PacketSocket, PacketSocket>> PacketSocket::Pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return absl::InternalError(std::string("socketpair: ") + std::strerror(errno));
  }
  return std::pair(PacketSocket(base::UniqueFd(ends[0])), PacketSocket(base::UniqueFd(ends[1])));
}

absl::Status PacketSocket::Send(std::string_view bytes, const std::vector<int>& descriptors) const {
  TENSORD_CHECK(descriptors.size() <= kDescriptorsMax);
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? SocketError("sendmsg") : absl::OkStatus();
}

absl::StatusOr<Packet> PacketSocket::Receive(size_t bytes_max, size_t descriptors_max) const {
  TENSORD_CHECK(descriptors_max <= kDescriptorsMax && bytes_max <= limits::kRecordBytesMax);
  // Most records are far below the limit: a buffer per thread is cheaper than clearing one of full
  // size for each of them.
  static thread_local std::array<char, limits::kRecordBytesMax> buffer;
  Packet packet;
  iovec part{.iov_base = buffer.data(), .iov_len = bytes_max};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control;
  if (descriptors_max > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors_max * sizeof(int));
  }
  ssize_t received = 0;
  do {
    received = recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0 && errno == EAGAIN) return absl::NotFoundError("no record waits");
  if (received < 0) return SocketError("recvmsg");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      packet.descriptors.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return absl::InvalidArgumentError("a record is longer, or carries more, than was agreed");
  }
  // An empty record is never sent, so 0 bytes mean that the peer closed.
  if (received == 0) return absl::UnavailableError("the peer is gone");
  packet.bytes.assign(buffer.data(), static_cast<size_t>(received));
  return packet;
}

void PacketSocket::SetNonBlocking() const {
  const int flags = fcntl(fd_.get(), F_GETFL);
  TENSORD_CHECK(flags >= 0 && fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) == 0);
}

}  // namespace tensord::channel
