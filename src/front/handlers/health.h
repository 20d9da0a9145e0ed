// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>

#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"
#include "wire/cold.h"

// grpc.health.v1. The service "" and the served services are SERVING when the server is ready (each
// configured model has been available, and it does not drain); a model's name is SERVING while it
// has an available version. Other names are unknown.
namespace tensord::front {

void HealthCheckGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                     std::span<const std::byte> message);
void HealthListGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                    std::span<const std::byte> message);
// Answers the state now and again whenever it changes, until the client goes or the server drains:
// then NOT_SERVING, and the end.
void HealthWatchGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                     std::span<const std::byte> message);
void HealthWatchEnd(LoopContext& context, std::shared_ptr<Exchange> exchange);

// The clients that watch on one loop.
// Threads: that loop. Lifetime: outlives the loop's connections.
class HealthWatchers {
 public:
  // False when there are too many already.
  [[nodiscard]] bool Add(const LoopContext& context, std::shared_ptr<Exchange> exchange,
                         std::string service);
  bool Has(const Exchange& exchange) const;
  // Tells every watcher whose service is not as it was.
  void Update(const LoopContext& context);
  // Ends all. REQUIRES: Update has told them that the server is not ready.
  void End(const absl::Status& status);

 private:
  struct Watcher {
    std::shared_ptr<Exchange> exchange;
    std::string service;
    wire::Health told = wire::Health::kUnknownService;
  };

  std::list<Watcher> watchers_;  // In the order of coming.
};

}  // namespace tensord::front
