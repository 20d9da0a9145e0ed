// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/byte_budget.h"
#include "base/limits.h"
#include "config/server_options.h"
#include "front/handlers/router.h"
#include "front/listener.h"
#include "loop/loop_set.h"
#include "serve/tls_keeper.h"
#include "supervisor/front_sockets.h"

namespace tensord::serve {

// The network side of the front: on every loop its listeners and its router.
// Threads: the control loop. Lifetime: loops, server context and TLS keeper outlive it; destroy it
// once no loop runs.
class Network {
 public:
  Network(loop::LoopSet* loops, front::ServerContext* context, const TlsKeeper* tls,
          uint64_t request_bytes_budget);

  // Takes the sockets over (and makes them listen, if they do not yet), on each loop its own.
  // `done` hears on the control loop: INTERNAL names what does not work.
  void Open(const supervisor::FrontSockets& sockets, const config::ServerOptions& options,
            std::function<void(absl::Status)> done);

  // What every loop answers from now on; `after` runs on the control loop when all have it.
  void Publish(std::shared_ptr<const models::Snapshot> snapshot, loop::Task after);

  // Tells those who watch the server's health that it drains.
  void AnnounceDrain();
  // Refuses new connections, lets the open ones finish, cuts what is left at `deadline`.
  void Drain(absl::Time deadline, loop::Task done);

  // Open connections of all loops, gathered by messages.
  void CountConnections(std::function<void(size_t)> done);
  uint64_t request_bytes_held() const { return budget_.used(); }
  uint64_t request_bytes_max() const { return budget_.limit(); }

 private:
  // What belongs to one loop's thread.
  struct PerLoop {
    std::unique_ptr<front::Router> router;
    std::vector<std::unique_ptr<front::Listener>> listeners;
  };

  absl::Status OpenLoop(int loop, const supervisor::LoopSockets& sockets, bool shared_port);
  // What one listening socket takes.
  struct Way {
    front::Protocols protocols;
    bool grpc = false;
    front::Door door = front::Door::kUsual;
    const tls::CredentialsSlot* tls = nullptr;
  };
  absl::Status OpenOne(int loop, int fd, const Way& way);

  loop::LoopSet* const loops_;
  const TlsKeeper* const tls_;
  base::ByteBudget budget_;
  base::ByteBudget inflated_budget_{limits::kInflatedBytesHeldMax};
  std::vector<PerLoop> per_loop_;
  front::Door admin_door_ = front::Door::kAdmin;   // Of the admin port.
  front::Http2Settings grpc_;                      // Of the sockets for gRPC alone.
  int connections_max_ = limits::kConnectionsMax;  // A listener.
  bool cors_ = false;                              // As Edge has it.
};

}  // namespace tensord::serve
