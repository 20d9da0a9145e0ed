// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <cstring>
#include <utility>

#include "base/text.h"

namespace tensord::bench {
namespace {

constexpr int kReadsAtOnce = 8;  // Then other sockets get their turn.

}  // namespace

absl::StatusOr<Address> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), base::Cat(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::NotFoundError(
        base::Cat("--host: no address for '", host, "': ", gai_strerror(error)));
  }
  Address address{.name = base::Cat(host, ":", port), .bytes = {}, .size = found->ai_addrlen};
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

void Socket::Connect() {
  Close();
  fd_.Reset(socket(address_.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = fd_.valid() ? 0 : errno;
  if (error == 0) {
    const int on = 1;
    setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // The sockets interface takes every address through its common head.
    const auto* to = reinterpret_cast<const sockaddr*>(&address_.bytes);
    if (connect(fd_.get(), to, address_.size) != 0 && errno != EINPROGRESS) error = errno;
  }
  if (error != 0) {
    fd_.Reset();
    loop_.Defer([this, error] { owner_.OnClosed(std::strerror(error)); });
    return;
  }
  wants_write_ = true;
  watch_ = loop_.Add(fd_.get(), EPOLLIN | EPOLLOUT, [this](uint32_t events) { OnReady(events); });
}

void Socket::Close() {
  watch_.Reset();
  secure_.reset();
  fd_.Reset();
  connected_ = false;
  out_.clear();
  out_written_ = 0;
  lent_ = {};
}

void Socket::OnReady(uint32_t events) {
  if (!connected_) return secure_ == nullptr ? FinishConnecting() : Shake();
  if ((events & EPOLLOUT) != 0) Flush();
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) ReadAll();
}

void Socket::FinishConnecting() {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return Fail(std::strerror(error));
  if (address_.tls == nullptr) return Up();
  secure_ = std::make_unique<SecureStream>(*address_.tls, fd_.get());
  Shake();
}

// Goes on with the handshake.
void Socket::Shake() {
  const SecureStream::Result result = secure_->Handshake();
  if (result == SecureStream::Result::kEnded) return Fail(secure_->why());
  const bool writes = result != SecureStream::Result::kWantRead;
  watch_.SetEvents(writes ? EPOLLIN | EPOLLOUT : EPOLLIN);
  if (result == SecureStream::Result::kDone) Up();
}

// REQUIRES: EPOLLOUT is watched.
void Socket::Up() {
  connected_ = true;
  owner_.OnConnected();
  Flush();
}

// Until nothing is left: what OpenSSL holds already wakes nobody.
void Socket::ReadAllSecure() {
  while (connected_) {
    size_t size = 0;
    const auto result = secure_->Read(read_buffer_.data(), read_buffer_.size(), &size);
    if (result == SecureStream::Result::kEnded) return Fail(secure_->why());
    if (result != SecureStream::Result::kDone) return;
    owner_.OnBytes({read_buffer_.data(), size});
  }
}

void Socket::ReadAll() {
  if (secure_ != nullptr) return ReadAllSecure();
  for (int i = 0; i < kReadsAtOnce && connected_; ++i) {
    const ssize_t size = recv(fd_.get(), read_buffer_.data(), read_buffer_.size(), 0);
    if (size > 0) {
      owner_.OnBytes({read_buffer_.data(), static_cast<size_t>(size)});
      if (static_cast<size_t>(size) < read_buffer_.size()) return;
    } else if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    } else {
      return Fail(size == 0 ? "the server closed the connection" : std::strerror(errno));
    }
  }
}

// True when all is written. An error is left for the next read to find: what the server said before
// it closed may be waiting there.
bool Socket::Write(std::string_view bytes, size_t* written) {
  while (*written < bytes.size()) {
    if (secure_ != nullptr) {
      size_t size = 0;
      const auto result = secure_->Write(bytes.substr(*written), &size);
      if (result != SecureStream::Result::kDone) return result == SecureStream::Result::kEnded;
      *written += size;
      continue;
    }
    const ssize_t size =
        send(fd_.get(), bytes.data() + *written, bytes.size() - *written, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno != EAGAIN;
    *written += static_cast<size_t>(size);
  }
  return true;
}

void Socket::Flush() {
  if (!connected_) return;
  bool all = Write(out_, &out_written_);
  if (all) {
    out_.clear();
    out_written_ = 0;
    size_t written = 0;
    all = Write(lent_, &written);
    lent_.remove_prefix(all ? lent_.size() : written);
  }
  if (wants_write_ == all) {
    wants_write_ = !all;
    watch_.SetEvents(all ? EPOLLIN : EPOLLIN | EPOLLOUT);
  }
}

void Socket::Send(std::string_view bytes) {
  lent_ = bytes;
  Flush();
}

void Socket::Fail(std::string_view why) {
  const std::string words(why);
  Close();
  owner_.OnClosed(words);
}

}  // namespace tensord::bench
