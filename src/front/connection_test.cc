// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include "base/limits.h"
#include "front/testing/echo_service.h"

namespace tensord::front {
namespace {

// A stream that wants the other direction first, as TLS does in a handshake: each read once to
// write, each write once to read.
class ContraryStream final : public ByteStream {
 public:
  explicit ContraryStream(base::UniqueFd socket) : inner_(MakePlainStream(std::move(socket))) {}

  int fd() const override { return inner_->fd(); }
  IoResult Read(std::span<std::byte> into) override {
    if (!std::exchange(may_read_, true)) return {.kind = IoResult::kWantWrite};
    return inner_->Read(into);
  }
  IoResult Write(std::span<const iovec> pieces) override {
    if (!std::exchange(may_write_, true)) return {.kind = IoResult::kWantRead};
    return inner_->Write(pieces);
  }
  void ShutdownWrite() override { inner_->ShutdownWrite(); }

 private:
  const std::unique_ptr<ByteStream> inner_;
  bool may_read_ = false;
  bool may_write_ = false;
};

// Owns one connection.
class OneConnection final : public ConnectionOwner {
 public:
  OneConnection(loop::EventLoop* loop, base::UniqueFd socket)
      : edge_{.loop = loop, .service = &service_, .budget = &budget_} {
    connection_ = std::make_unique<Connection>(
        this, std::make_unique<ContraryStream>(std::move(socket)), "test");
  }

  const Edge& edge() const override { return edge_; }
  Protocols protocols() const override { return {}; }
  std::span<std::byte> read_scratch() override { return scratch_; }
  OutQueue* out_scratch() override { return &out_; }
  void WantTurn(Connection* connection) override {
    edge_.loop->Defer([connection] { connection->RunTurn(); });
  }
  void OnActivity(Connection*) override {}
  void OnClosed(Connection*) override {}

 private:
  EchoService service_;
  base::ByteBudget budget_{1 << 20};
  const Edge edge_;
  std::array<std::byte, 4096> scratch_;
  OutQueue out_;
  std::unique_ptr<Connection> connection_;
};

TEST(Connection, AReadThatWantsToWriteAndAWriteThatWantsToReadGoOn) {
  const auto loop = *loop::EventLoop::Create();
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  base::UniqueFd client(ends[0]);
  OneConnection owner(loop.get(), base::UniqueFd(ends[1]));
  // The second request is what the first answer's write waits for.
  const std::string request = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
  std::string got;
  for (int i = 0; i < 50; ++i) {
    if (i == 0 || i == 20) {
      ASSERT_EQ(send(client.get(), request.data(), request.size(), 0), ssize_t(request.size()));
    }
    loop->RunOnce(absl::InfinitePast());
    std::array<char, 4096> buffer;
    const ssize_t n = recv(client.get(), buffer.data(), buffer.size(), 0);
    if (n > 0) got.append(buffer.data(), static_cast<size_t>(n));
    EXPECT_TRUE(got.empty() || i >= 20);
  }
  EXPECT_EQ(got.find("HTTP/1.1 200"), 0u);
  EXPECT_NE(got.find("HTTP/1.1 200", 1), std::string::npos);
}

}  // namespace
}  // namespace tensord::front
