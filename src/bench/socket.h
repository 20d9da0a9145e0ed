// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "bench/secure.h"
#include "loop/event_loop.h"

namespace tensord::bench {

// Where a server listens.
struct Address {
  std::string name;  // "localhost:8500", as the user wrote it.
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  std::shared_ptr<const TlsClient> tls = {};  // Null: in plain. Shared by the threads of a load.
};
// A host's name or its IPv4 or IPv6 address. NOT_FOUND names the host.
absl::StatusOr<Address> Resolve(const std::string& host, int port);

// A TCP socket on a loop that connects, and connects again, with what could not be written yet.
// Threads: the loop's. Lifetime: loop, owner and read buffer outlive it.
class Socket {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnConnected() = 0;
    virtual void OnBytes(std::string_view bytes) = 0;
    // The peer has gone, or was not there. The socket may be connected anew from in here.
    virtual void OnClosed(std::string_view why) = 0;
  };

  // `read_buffer` is shared by the sockets of a loop, and has its size.
  Socket(loop::EventLoop& loop, const Address& address, std::string* read_buffer, Owner* owner)
      : loop_(loop), address_(address), read_buffer_(*read_buffer), owner_(*owner) {}

  // OnConnected or OnClosed follows, never inside this call. REQUIRES: not open.
  void Connect();
  // Ends the connection; the owner is not called.
  void Close();

  // Bytes for the next Flush.
  std::string& out() { return out_; }
  // Writes what the kernel takes, the rest when it takes more.
  void Flush();
  // Writes bytes that outlive the connection, without a copy. REQUIRES: the last ones are written.
  void Send(std::string_view bytes);

  bool open() const { return watch_.active(); }
  bool connected() const { return connected_; }

 private:
  void OnReady(uint32_t events);
  void FinishConnecting();
  void Shake();
  void Up();
  void ReadAll();
  void ReadAllSecure();
  void Fail(std::string_view why);
  bool Write(std::string_view bytes, size_t* written);

  loop::EventLoop& loop_;
  const Address& address_;
  std::string& read_buffer_;
  Owner& owner_;

  base::UniqueFd fd_;
  std::unique_ptr<SecureStream> secure_;  // Null while there is no connection, or in plain.
  bool connected_ = false;
  std::string out_;
  size_t out_written_ = 0;
  std::string_view lent_;  // Goes after out_.
  bool wants_write_ = false;
  loop::EventLoop::Watch watch_;  // After fd_: goes first.
};

}  // namespace tensord::bench
