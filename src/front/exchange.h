// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "front/trace.h"
#include "loop/event_loop.h"

namespace tensord::front {

using Header = std::pair<std::string, std::string>;                // Name in lower case.
using HeaderView = std::pair<std::string_view, std::string_view>;  // Name in lower case.

// Which listener a request came in by.
enum class Door : uint8_t {
  kUsual,       // A port for everybody.
  kAdminLocal,  // The admin listener, on a loopback address or a UNIX socket.
  kAdmin,       // The admin listener, where others reach it.
};

// The names in a client's certificate.
using PeerNames = std::shared_ptr<const std::vector<std::string>>;

enum class Protocol : uint8_t { kHttp1, kHttp2 };

// A request's line and fields, complete before its body. HTTP/2's :authority is called "host" here.
// Lifetime: the headers are views into the Exchange's memory, so a copy must not outlive it.
struct RequestHead {
  Protocol protocol = Protocol::kHttp1;
  std::string method = {};  // "POST"
  std::string target = {};  // As sent: path, query and all.
  std::vector<HeaderView> headers = {};
  absl::Time arrived = {};  // Monotonic, of the first byte.
  std::string peer = {};    // "127.0.0.1:40312", "unix"; for logs.
  bool grpc_port = true;    // Whether the port takes gRPC calls.
  Door door = Door::kUsual;
  PeerNames peer_names = {};  // Null: the client has proved none.

  // The first value of that (lower-case) name.
  std::optional<std::string_view> Find(std::string_view name) const;
};

// The one answer. For HTTP/1.1, trailers are not sent.
struct Answer {
  int status = 200;
  absl::StatusCode code = absl::StatusCode::kOk;  // What it says, for metrics and logs; not sent.
  // Without content-length, connection, date: those are the connection's. Characters that would
  // end a header line are replaced by spaces.
  std::vector<Header> headers = {};
  // Goes out right before the body: gRPC's five bytes, without moving the body.
  std::string prefix = {};
  std::string body = {};
  std::vector<Header> trailers = {};  // gRPC: grpc-status and grpc-message.
  bool trailers_only = false;         // gRPC: trailers go out in the first and only HEADERS frame.
};

// One request on its way to one answer, owned by its connection.
//
// A handler may keep the shared_ptr it got as long as it likes: when the client has gone away, Send
// is a no-op. That is how "exactly one answer, or its connection is gone" is kept.
// Threads: the connection's loop only, the release of the last shared_ptr included; to answer from
// another loop, post to loop().
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual loop::EventLoop& loop() = 0;
  virtual const RequestHead& head() const = 0;
  // The whole body, with a content-encoding of gzip undone. A gRPC body is its one frame, five
  // bytes of prefix included; a compressed message is inflated and its flag cleared. Valid until
  // Send, or until the last shared_ptr goes when the client left.
  virtual std::span<const std::byte> body() const = 0;
  // For notes of what becomes of the request.
  virtual Trace& trace() = 0;
  // The body claimed to be gzip and was not: body() is empty, as the original hands it on.
  virtual bool body_undecodable() const { return false; }
  // At most once; later calls do nothing. May run before the body is complete: the rest is then
  // read and dropped, or the stream reset.
  virtual void Send(Answer answer) = 0;
  // Runs once if the client resets the stream or goes away before the answer was given; at once if
  // it has already gone. After Send it is forgotten.
  virtual void OnCancel(absl::AnyInvocable<void()> cancelled) = 0;

  // From inside OnBodyBegin: the body is received at the start of `memory`, which is as large as
  // the body at least. Lifetime: `owner` keeps the memory.
  virtual void ReceiveInto(std::span<std::byte> memory, std::shared_ptr<const void> owner) = 0;

  // From inside OnHead of a gRPC call: it is a stream. Its messages come one by one, by OnMessage,
  // where body() is the one message; it is answered by any number of Writes and ends with Send,
  // whose status alone counts.
  virtual void BeginStream() = 0;
  // Sends one message of a stream's answer. A client that does not read is cut off. REQUIRES:
  // BeginStream; does nothing after Send or when the client has gone.
  virtual void Write(std::string message) = 0;
};

// How a request ended.
struct Ending {
  const RequestHead& head;
  const Trace& trace;
  absl::StatusCode code = absl::StatusCode::kOk;  // CANCELLED when the client left before that.
  int http_status = 200;
  uint64_t answer_bytes = 0;
  // Monotonic: the kernel took the answer's last byte, or the connection was gone.
  absl::Time at = {};
  bool delivered = true;  // The kernel took all of the answer.
};

// What the connections hand requests to. One for the whole server.
// Threads: called on each connection's loop.
class Service {
 public:
  virtual ~Service() = default;
  // Head complete, body not yet read. The service may Send at once (refusal).
  virtual void OnHead(Exchange& exchange) = 0;
  // Of a large gRPC call the body's first bytes are there, and it will have `bytes` of them, the
  // prefix included: the service may Send at once, or say where to receive them. Once a call,
  // uncompressed ones only; body() need not have them yet.
  virtual void OnBodyBegin(Exchange& /*exchange*/, std::span<const std::byte> /*begin*/,
                           uint64_t /*bytes*/) {}
  // Body complete; not called when OnHead has answered, nor when the connection itself refused the
  // body (too large, cut short, no memory left) or the client left before its end.
  virtual void OnRequest(std::shared_ptr<Exchange> exchange) = 0;
  // Of streams, in OnRequest's place: one message is complete; the client sends no more.
  virtual void OnMessage(std::shared_ptr<Exchange> /*exchange*/) {}
  virtual void OnMessagesEnd(std::shared_ptr<Exchange> /*exchange*/) {}
  // For logs and metrics: the connection answered `http_status` on its own, before or after OnHead.
  // `head` may be partly filled when it was the head that could not be read.
  virtual void OnRefused(const RequestHead& /*head*/, int /*http_status*/,
                         std::string_view /*why*/) {}
  // Every request that had a head (or a part of one) ends here, once, whatever became of it.
  virtual void OnDone(const Ending& /*ending*/) {}
};

}  // namespace tensord::front
