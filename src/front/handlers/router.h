// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <span>

#include "front/exchange.h"
#include "front/handlers/context.h"
#include "front/handlers/health.h"
#include "sched/call.h"
#include "sched/version_queue.h"
#include "tensor/request.h"

namespace tensord::front {

// Sends every request of one loop to its handler: gRPC by service and method, all else by URL.
// Threads: the loop's. Lifetime: outlives the loop's listeners; `server` outlives it.
class Router final : public Service {
 public:
  Router(ServerContext* server, loop::EventLoop* loop);

  // Everything before the body: a call that its head already refuses is answered at once.
  void OnHead(Exchange& exchange) override;
  void OnBodyBegin(Exchange& exchange, std::span<const std::byte> begin, uint64_t bytes) override;
  void OnRequest(std::shared_ptr<Exchange> exchange) override;
  void OnDone(const Ending& ending) override;

  void OnMessage(std::shared_ptr<Exchange> exchange) override;
  void OnMessagesEnd(std::shared_ptr<Exchange> exchange) override;

  // What is served from now on.
  void SetSnapshot(std::shared_ptr<const models::Snapshot> snapshot);
  // The server has begun to drain: who watches its health is told.
  void OnDraining() { watchers_.Update(context_); }
  // No stream goes on beyond this.
  void EndStreams();

 private:
  void OnRestHead(Exchange& exchange);
  void OnGrpc(std::shared_ptr<Exchange> exchange);
  void OnHttp(std::shared_ptr<Exchange> exchange);
  void OnRest(std::shared_ptr<Exchange> exchange);
  void RefuseRestEarly(Exchange& exchange);
  sched::VersionQueue* QueueHere(Exchange& exchange, const tensor::ModelSpec& spec) const;
  void ReceiveInPlace(Exchange& exchange, sched::VersionQueue* queue,
                      std::span<const std::byte> begin, uint64_t bytes);
  std::optional<sched::CallResult> RefusalBefore(const RequestHead& head,
                                                 sched::VersionQueue* queue, sched::EarlyCall call);
  bool cors() const { return context_.cors(); }

  HealthWatchers watchers_;
  LoopContext context_;
};

}  // namespace tensord::front
