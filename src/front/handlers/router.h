// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "front/exchange.h"
#include "front/handlers/context.h"

namespace tensord::front {

// Sends every request of one loop to its handler: gRPC by service and method, all else by URL.
// Threads: the loop's. Lifetime: outlives the loop's listeners; `server` outlives it.
class Router final : public Service {
 public:
  Router(ServerContext* server, loop::EventLoop* loop);

  // Everything before the body: a call that its head already refuses is answered at once.
  void OnHead(Exchange& exchange) override;
  void OnRequest(std::shared_ptr<Exchange> exchange) override;
  void OnDone(const Ending& ending) override;

  // What is served from now on.
  void SetSnapshot(std::shared_ptr<const models::Snapshot> snapshot) {
    context_.snapshot = std::move(snapshot);
  }

 private:
  void OnGrpc(std::shared_ptr<Exchange> exchange);
  void OnHttp(std::shared_ptr<Exchange> exchange);
  void OnRest(std::shared_ptr<Exchange> exchange);

  LoopContext context_;
};

}  // namespace tensord::front
