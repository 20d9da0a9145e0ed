// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/byte_stream.h"

#include <errno.h>
#include <sys/socket.h>

#include <utility>

namespace tensord::front {
namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(base::UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const override { return socket_.get(); }

  IoResult Read(std::span<std::byte> into) override {
    while (true) {
      const ssize_t n = recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
      if (n > 0) return {.kind = IoResult::kDone, .bytes = static_cast<size_t>(n)};
      if (n == 0) return {.kind = IoResult::kEnd};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {.kind = IoResult::kWantRead};
      return {.kind = IoResult::kFailed};
    }
  }

  IoResult Write(std::span<const iovec> pieces) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    while (true) {
      const ssize_t n = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n >= 0) return {.kind = IoResult::kDone, .bytes = static_cast<size_t>(n)};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {.kind = IoResult::kWantWrite};
      return {.kind = IoResult::kFailed};
    }
  }

  void ShutdownWrite() override { shutdown(socket_.get(), SHUT_WR); }

 private:
  const base::UniqueFd socket_;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(base::UniqueFd socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace tensord::front
