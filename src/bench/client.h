// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/socket.h"
#include "loop/event_loop.h"

// The load generator's side of a connection: as little of a client as can keep a server busy.
namespace tensord::bench {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// What goes out, again and again. Never changes, so all threads share it.
struct Request {
  HeaderList fields = {};  // gRPC: all of HTTP/2's header fields.
  std::string bytes = {};  // gRPC: the message with its five bytes; REST: head and body.
};

class Client;

// A request that is out, or waits for a connection.
// Owned by who sends it; a client has it from Send until OnAnswer or Cancel.
struct Call {
  const Request* request = nullptr;
  uint32_t kind = 0;
  uint32_t generation = 0;  // Counts up with each use of this memory.
  bool counted = false;     // Belongs to what is measured.
  bool expired = false;     // Its time passed while it waited for a connection.
  int64_t due_ns = 0;       // When it should have gone out.
  int64_t sent_ns = 0;      // When it did.
  Client* client = nullptr;
  std::string* body = nullptr;  // Where the answer's body goes; null: nowhere.

  // The client's own notes.
  size_t slot = 0;
  int32_t stream = 0;
  size_t sent_bytes = 0;
  int http_status = 0;
  int grpc_status = -1;
  std::string message;
};

// No server's code: what became of a call on our side.
enum LocalCode : int {
  kConnectionLost = -1,
  kDeadlinePassed = -2,  // No answer by the deadline; the call was cancelled.
  kLate = -3,            // A good answer, after the deadline.
  kUnanswered = -4,      // Still out when the run ended.
  kNotSent = -5,         // Too many were out.
};

// What came back.
struct Answer {
  bool ok = false;              // gRPC status 0, or HTTP 200.
  int code = 0;                 // The gRPC status, the HTTP status, or a LocalCode.
  std::string_view words = {};  // If not ok. Valid during OnAnswer.
  int64_t at_ns = 0;            // When it was read.
};

// One connection. Threads: the loop's. Lifetime: the loop outlives it.
class Client {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnUp(Client& client) = 0;
    // Calls that were out have got their answers. `was_up`: false when it could not connect.
    virtual void OnDown(Client& client, std::string_view why, bool was_up) = 0;
    // Once for each Send that is not cancelled. From in here, Send is allowed.
    virtual void OnAnswer(Call& call, const Answer& answer) = 0;
    // CanTake has become true again.
    virtual void OnFree(Client& client) = 0;
  };

  virtual ~Client() = default;
  // OnUp or OnDown follows, not inside this call. REQUIRES: down, as it is at first.
  virtual void Connect() = 0;
  virtual bool CanTake() const = 0;
  // REQUIRES: CanTake().
  virtual void Send(Call& call) = 0;
  // Forgets a call that was sent, and tells the server so.
  virtual void Cancel(Call& call) = 0;
};

// What the connections of a thread have in common. Lifetime: outlives them.
struct ClientPlace {
  loop::EventLoop& loop;
  const Address& address;
  Client::Listener& listener;
  std::string read_buffer = std::string(256 * 1024, '\0');  // Large answers in few calls.
};

// Many calls at a time.
std::unique_ptr<Client> MakeGrpcClient(ClientPlace& place);
// One call at a time. `one_shot`: each on a connection of its own.
std::unique_ptr<Client> MakeRestClient(ClientPlace& place, bool one_shot);

// The monotonic clock.
int64_t NowNanoseconds(const loop::EventLoop& loop);

}  // namespace tensord::bench
