// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "base/text.h"

namespace tensord::bench {
namespace {

constexpr size_t kReadBytes = 256 * 1024;  // Large answers in few calls.
constexpr int kReadsAtOnce = 8;            // Then other sockets get their turn.

}  // namespace

absl::StatusOr<base::UniqueFd> Socket::Connect(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return absl::InvalidArgumentError(base::Cat("'", host, "' is no IPv4 address"));
  }
  base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The sockets interface takes every address through its common head.
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(
        base::Cat("cannot connect to ", host, ":", port, ": ", std::strerror(errno)));
  }
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  return fd;
}

Socket::Socket(loop::EventLoop& loop, base::UniqueFd fd,
               std::function<void(std::string_view)> on_bytes, std::function<void()> on_closed)
    : fd_(std::move(fd)), on_bytes_(std::move(on_bytes)), on_closed_(std::move(on_closed)) {
  in_.resize(kReadBytes);
  watch_ = loop.Add(fd_.get(), EPOLLIN, [this](uint32_t events) { OnReady(events); });
}

void Socket::OnReady(uint32_t events) {
  if ((events & EPOLLOUT) != 0) Flush();
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) ReadAll();
}

void Socket::ReadAll() {
  for (int i = 0; i < kReadsAtOnce && open(); ++i) {
    const ssize_t size = recv(fd_.get(), in_.data(), in_.size(), 0);
    if (size > 0) {
      on_bytes_({in_.data(), static_cast<size_t>(size)});
      if (static_cast<size_t>(size) < in_.size()) return;
    } else if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    } else {
      Close();
    }
  }
}

void Socket::Flush() {
  while (open() && written_ < out_.size()) {
    const ssize_t size =
        send(fd_.get(), out_.data() + written_, out_.size() - written_, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno != EAGAIN) return Close();
    if (size < 0) break;
    written_ += static_cast<size_t>(size);
  }
  const bool all = written_ == out_.size();
  if (all) {
    out_.clear();
    written_ = 0;
  }
  if (open() && wants_write_ == all) {
    wants_write_ = !all;
    watch_.SetEvents(all ? EPOLLIN : EPOLLIN | EPOLLOUT);
  }
}

void Socket::Close() {
  if (!open()) return;
  watch_.Reset();
  on_closed_();
}

}  // namespace tensord::bench
