// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/testing/edge_fixture.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <utility>

#include "base/check.h"

namespace tensord::front {
namespace {

// Each is one look at the sockets; a request and its answer take two or three.
constexpr int kLooksPerPump = 8;

}  // namespace

size_t RawClient::Send(std::string_view bytes) {
  const ssize_t n = send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN) broken_ = true;
  return n < 0 ? 0 : static_cast<size_t>(n);
}

std::string RawClient::Receive() {
  std::string all;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) {
      all.append(buffer.data(), static_cast<size_t>(n));
      continue;
    }
    if (n == 0) closed_ = true;
    if (n < 0 && errno != EAGAIN) closed_ = broken_ = true;
    return all;
  }
}

void RawClient::ShutdownWrite() { shutdown(socket_.get(), SHUT_WR); }

EdgeFixture::EdgeFixture(const ListenerOptions& options, uint64_t budget_bytes)
    : loop_(*loop::EventLoop::Create(clock_)), budget_(budget_bytes) {
  base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The kernel chooses a name that no file has.
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  TENSORD_CHECK(bind(fd.get(), any, sizeof(address.sun_family)) == 0);
  TENSORD_CHECK(listen(fd.get(), SOMAXCONN) == 0);
  socklen_t size = sizeof(address);
  TENSORD_CHECK(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  address_.assign(reinterpret_cast<const char*>(&address), size);
  listener_ = *Listener::Create(loop_.get(), std::move(fd), options, &service_, &budget_);
}

RawClient EdgeFixture::Connect() {
  base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* address = reinterpret_cast<const sockaddr*>(address_.data());
  TENSORD_CHECK(connect(fd.get(), address, static_cast<socklen_t>(address_.size())) == 0);
  return RawClient(std::move(fd));
}

void EdgeFixture::Pump() {
  for (int i = 0; i < kLooksPerPump; ++i) loop_->RunOnce(absl::InfinitePast());
}

void EdgeFixture::Advance(absl::Duration by) {
  for (absl::Duration done; done < by; done += absl::Seconds(1)) {
    clock_.Move(absl::Seconds(1));
    Pump();
  }
}

std::string EdgeFixture::Talk(RawClient* client, std::string_view bytes) {
  std::string all;
  int quiet = 0;
  while (quiet < 3) {
    const size_t sent = bytes.empty() ? 0 : client->Send(bytes);
    bytes.remove_prefix(sent);
    Pump();
    const std::string some = client->Receive();
    all += some;
    quiet = sent == 0 && some.empty() ? quiet + 1 : 0;
  }
  return all;
}

}  // namespace tensord::front
