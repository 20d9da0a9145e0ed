// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "loop/event_loop.h"

// The load generator's side of a connection: as little of a client as can keep a server busy.
namespace tensord::bench {

// What came back.
struct Reply {
  bool ok = false;     // gRPC status 0, or HTTP 200.
  std::string reason;  // If not: the status and its words, or how the connection ended.
  uint64_t bytes = 0;  // Of the body.
};

using ReplyDone = absl::AnyInvocable<void(Reply)>;

// Where to connect and what to send, again and again.
struct Target {
  std::string host = "127.0.0.1";  // An IPv4 address.
  int port = 0;
  std::string path;  // "/tensorflow.serving.PredictionService/Predict", "/v1/models/m:predict"
  std::string body;  // gRPC: the message, without its five bytes.
};

// One connection. Threads: the loop's. Lifetime: the loop outlives it; when it goes, requests that
// are out are dropped without a call of their `done`.
class Client {
 public:
  virtual ~Client() = default;
  // Sends the target's request. `done` runs once, also when the connection breaks; then every later
  // Send fails, too. Over HTTP/1.1 one request is out at a time: others wait in order.
  virtual void Send(ReplyDone done) = 0;
};

// UNAVAILABLE when nobody listens there.
absl::StatusOr<std::unique_ptr<Client>> ConnectGrpc(loop::EventLoop& loop, const Target& target);
absl::StatusOr<std::unique_ptr<Client>> ConnectRest(loop::EventLoop& loop, const Target& target);

}  // namespace tensord::bench
