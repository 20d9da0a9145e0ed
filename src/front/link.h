// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/byte_budget.h"
#include "base/limits.h"
#include "front/exchange.h"
#include "front/http2/settings.h"
#include "loop/event_loop.h"

namespace tensord::front {

class Call;

// What all connections of a listener share. Lifetime: what it points to outlives them.
struct Edge {
  loop::EventLoop* loop;
  Service* service;
  base::ByteBudget* budget;  // Of request bodies and unsent answers.
  uint64_t body_bytes_max = limits::kBodyBytesMax;
  uint64_t inflated_bytes_max = limits::kInflatedBytesMax;
  // For what compressed bodies become: a small budget, so that bombs cannot take the large one.
  base::ByteBudget* inflated_budget = nullptr;  // Null: `budget`.
  bool grpc = true;                             // Takes gRPC calls.
  bool cors = false;  // Web pages may read answers of the REST API, refusals too.
  Door door = Door::kUsual;
  Http2Settings http2 = {};

  base::ByteBudget* ForInflated() const { return inflated_budget ? inflated_budget : budget; }
};

// What a session asks of its connection. Lifetime: outlives the session.
class Link {
 public:
  virtual ~Link() = default;
  virtual const Edge& edge() const = 0;
  virtual const std::string& peer() const = 0;
  virtual PeerNames peer_names() const { return nullptr; }
  // A Turn at the end of this iteration; from inside Turn, of the next one.
  virtual void WantTurn() = 0;
  // All of this call's answer is in the output of this turn: its end is told when it is written.
  virtual void Leaves(std::shared_ptr<Call> call) = 0;
  // Stops and resumes reading: the client has to wait.
  virtual void SetReading(bool on) = 0;
  // Closes once everything is written: politely, so that no reset overtakes what the client has
  // still to read, or abruptly, for a client that abuses the connection.
  enum class Closing : uint8_t { kPolite, kAbrupt };
  virtual void CloseWhenWritten(Closing closing) = 0;
  // Closes at once.
  virtual void Abort() = 0;
};

}  // namespace tensord::front
