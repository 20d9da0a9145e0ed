// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "front/listener.h"
#include "front/testing/echo_service.h"

namespace tensord::front {

// The client's end of a connection in a test. Never blocks.
class RawClient {
 public:
  explicit RawClient(base::UniqueFd socket) : socket_(std::move(socket)) {}

  // As many bytes as the kernel takes.
  size_t Send(std::string_view bytes);
  // All that has come; closed() and reset() are up to date afterwards.
  std::string Receive();
  void ShutdownWrite();
  void Close() { socket_.Reset(); }
  bool closed() const { return closed_; }  // The server sends no more, or the connection broke.
  bool broken() const { return broken_; }

 private:
  base::UniqueFd socket_;
  bool closed_ = false;
  bool broken_ = false;
};

// A listener on a unix socket with EchoService behind it, on one thread and in a time that only the
// test moves.
class EdgeFixture {
 public:
  explicit EdgeFixture(const ListenerOptions& options = {}, uint64_t budget_bytes = 1 << 30);

  RawClient Connect();
  // Lets the server do what it can do now.
  void Pump();
  // Moves time on in steps of a second, pumping.
  void Advance(absl::Duration by);
  // Sends all, pumps, and gives what comes back until nothing more comes.
  std::string Talk(RawClient* client, std::string_view bytes);

  loop::EventLoop& loop() { return *loop_; }
  EchoService& service() { return service_; }
  base::ByteBudget& budget() { return budget_; }
  std::unique_ptr<Listener>& listener() { return listener_; }

 private:
  class HandClock final : public base::Clock {
   public:
    absl::Time Now() const override { return now_; }
    void Move(absl::Duration by) { now_ += by; }

   private:
    absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  };

  HandClock clock_;
  std::unique_ptr<loop::EventLoop> loop_;
  EchoService service_;
  base::ByteBudget budget_;
  std::unique_ptr<Listener> listener_;
  std::string address_;  // The raw sockaddr.
};

}  // namespace tensord::front
