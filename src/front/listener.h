// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "front/connection.h"
#include "loop/event_loop.h"
#include "tls/credentials.h"

namespace tensord::front {

struct ListenerOptions {
  Protocols protocols = {};
  int connections_max = limits::kConnectionsMax;
  uint64_t body_bytes_max = limits::kBodyBytesMax;
  uint64_t inflated_bytes_max = limits::kInflatedBytesMax;
  base::ByteBudget* inflated_budget = nullptr;  // Null: the budget of all bodies.
  bool grpc = true;                             // Takes gRPC calls, where it takes HTTP/2.
  bool cors = false;                            // As Edge has it.
  Http2Settings http2 = {};
  Door door = Door::kUsual;
  const tls::CredentialsSlot* tls = nullptr;  // Null: plain bytes. Outlives the listener.
};

// Since the listener was made.
struct ListenerCounts {
  uint64_t accepted = 0;
  uint64_t refused = 0;  // Closed unread: no descriptor or place was left and none was idle.
  uint64_t evicted = 0;  // Idle ones closed to make room.
};

// One listening socket on one loop, and the connections it accepted.
//
// At connections_max the connection that has been idle longest makes room; when none is idle, new
// ones wait in the kernel's queue. Without a free descriptor likewise; a spare one, kept for that
// moment, lets the newcomer at least see its connection closed.
//
// Threads: the loop's (or before it runs). Owns: its connections.
// Lifetime: loop, service and budget outlive it. Destroy it between iterations, not in a callback.
class Listener final : public ConnectionOwner {
 public:
  // INVALID_ARGUMENT when `fd` is no listening stream socket.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(loop::EventLoop* loop, base::UniqueFd fd,
                                                          const ListenerOptions& options,
                                                          Service* service,
                                                          base::ByteBudget* budget);
  ~Listener() override;

  // What becomes of those who connect after StopAccepting while another process (the supervisor)
  // keeps the socket open.
  enum class Newcomers : uint8_t {
    kWait,    // In the kernel's queue, for whoever accepts next.
    kRefuse,  // Refused at once. The socket listens no more, in any process.
  };
  // Takes what the kernel has accepted so far, then no more, and closes the descriptor.
  void StopAccepting(Newcomers newcomers);

  // Stops accepting and refuses newcomers; tells clients to go (GOAWAY, Connection: close);
  // finishes what is under way. `done` runs once, from the loop, when no connection is left, and
  // may destroy the listener; those left at `deadline` are cut.
  void Drain(absl::Time deadline, absl::AnyInvocable<void()> done);

  size_t connections() const { return connections_.size(); }
  size_t open_calls() const;  // Begun and unanswered. Walks the connections.
  const ListenerCounts& counts() const { return counts_; }

  // ConnectionOwner, for the connections.
  const Edge& edge() const override { return edge_; }
  Protocols protocols() const override { return options_.protocols; }
  std::span<std::byte> read_scratch() override { return {read_scratch_.get(), limits::kReadBytes}; }
  OutQueue* out_scratch() override { return &out_scratch_; }
  void WantTurn(Connection* connection) override;
  void OnActivity(Connection* connection) override;
  void OnClosed(Connection* connection) override;

 private:
  // What deferred tasks and timers hold: empty once the listener has gone.
  using Self = std::shared_ptr<Listener*>;

  Listener(loop::EventLoop* loop, base::UniqueFd fd, const ListenerOptions& options,
           Service* service, base::ByteBudget* budget);

  bool full() const { return connections_.size() >= static_cast<size_t>(options_.connections_max); }
  void OnReady();
  int AcceptOne();
  void OnAcceptError(int error);
  void Adopt(base::UniqueFd socket, std::string peer);
  bool EvictIdle();
  void PauseAccepting(absl::Duration wait);
  void WatchAccepts();
  void WantTurns();
  void RunTurns();
  void Tick();
  void FinishDrain();

  // Constant after construction.
  const ListenerOptions options_;
  const Edge edge_;
  const std::unique_ptr<std::byte[]> read_scratch_;

  base::UniqueFd fd_;
  base::UniqueFd spare_;  // Given up for a moment when no descriptor is left.
  loop::EventLoop::Watch watch_;
  OutQueue out_scratch_;
  std::list<std::unique_ptr<Connection>> connections_;  // The one quiet for longest first.
  std::vector<Connection*> turns_;                      // Those that want one.
  std::vector<Connection*> running_turns_;
  std::vector<Connection*> closed_;
  bool turns_wanted_ = false;
  loop::TimerId tick_ = 0;
  loop::TimerId accept_again_ = 0;
  loop::TimerId drain_end_ = 0;
  bool draining_ = false;
  absl::AnyInvocable<void()> drained_;
  ListenerCounts counts_;
  const Self self_;
};

}  // namespace tensord::front
