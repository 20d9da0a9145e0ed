// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/health.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "front/handlers/authorize.h"
#include "front/handlers/reply.h"

namespace tensord::front {
namespace {

// The original's names have no package; clients that check health by service name use the full
// ones.
constexpr std::array<std::string_view, 6> kServices = {"",
                                                       "ModelService",
                                                       "PredictionService",
                                                       "inference.GRPCInferenceService",
                                                       "tensorflow.serving.ModelService",
                                                       "tensorflow.serving.PredictionService"};

bool Draining(const LoopContext& context) {
  return context.server->draining.load(std::memory_order_relaxed);
}

wire::Health HealthIf(bool serving) {
  return serving ? wire::Health::kServing : wire::Health::kNotServing;
}

wire::Health HealthOf(const LoopContext& context, std::string_view service) {
  for (const std::string_view known : kServices) {
    if (service == known) return HealthIf(context.ready());
  }
  const absl::StatusOr<bool> model = context.snapshot->ModelReady(service);
  return model.ok() ? HealthIf(*model && !Draining(context)) : wire::Health::kUnknownService;
}

// OnHead asked for probes of any model; a name that is no service of ours is a model's.
absl::Status AuthorizeService(const LoopContext& context, const Exchange& exchange,
                              std::string_view service) {
  for (const std::string_view known : kServices) {
    if (service == known) return absl::OkStatus();
  }
  return Authorize(context, exchange.head(), Operation::kProbe, service);
}

}  // namespace

void HealthCheckGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                     std::span<const std::byte> message) {
  const absl::StatusOr<std::string> service = wire::ParseHealthCheckRequest(wire::Chars(message));
  if (!service.ok()) return ReplyGrpc(*exchange, service.status());
  const absl::Status allowed = AuthorizeService(context, *exchange, *service);
  if (!allowed.ok()) return ReplyGrpc(*exchange, allowed);
  const wire::Health health = HealthOf(context, *service);
  if (health == wire::Health::kUnknownService) {
    return ReplyGrpc(*exchange, absl::NotFoundError(base::Cat(
                                    "unknown service '", *service,
                                    "'; use \"\", a served service's name or a model's name")));
  }
  ReplyGrpc(*exchange, absl::OkStatus(), wire::EncodeHealthCheckResponse(health));
}

void HealthListGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                    std::span<const std::byte>) {
  std::vector<std::pair<std::string, wire::Health>> services;
  for (const auto& [name, model] : context.snapshot->models) {
    if (!Permits(context, exchange->head(), Operation::kProbe, name)) continue;
    services.emplace_back(name, HealthOf(context, name));
  }
  for (const std::string_view name : kServices) {
    services.emplace_back(name, HealthOf(context, name));
  }
  ReplyGrpc(*exchange, absl::OkStatus(), wire::EncodeHealthListResponse(services));
}

void HealthWatchGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                     std::span<const std::byte> message) {
  absl::StatusOr<std::string> service = wire::ParseHealthCheckRequest(wire::Chars(message));
  if (!service.ok()) return exchange->Send(MakeGrpcEnd(service.status()));
  const absl::Status allowed = AuthorizeService(context, *exchange, *service);
  if (!allowed.ok()) return exchange->Send(MakeGrpcEnd(allowed));
  if (context.watchers->Has(*exchange)) {
    return exchange->Send(
        MakeGrpcEnd(absl::InternalError("more than one request in a call of Watch")));
  }
  Exchange& call = *exchange;
  if (context.watchers->Add(context, std::move(exchange), *std::move(service))) return;
  call.Send(MakeGrpcEnd(absl::ResourceExhaustedError(
      base::Cat("the server has ", limits::kHealthWatchesMax,
                " health watches open, the limit; use Check, or try again later"))));
}

void HealthWatchEnd(LoopContext& context, std::shared_ptr<Exchange> exchange) {
  // The client's side of a watch ends right behind its one request.
  if (context.watchers->Has(*exchange)) return;
  exchange->Send(MakeGrpcEnd(absl::InternalError("the call carries no message")));
}

bool HealthWatchers::Add(const LoopContext& context, std::shared_ptr<Exchange> exchange,
                         std::string service) {
  if (watchers_.size() >= limits::kHealthWatchesMax) return false;
  const wire::Health health = HealthOf(context, service);
  Exchange& call = *exchange;
  watchers_.push_back(
      {.exchange = std::move(exchange), .service = std::move(service), .told = health});
  call.OnCancel([this, watcher = std::prev(watchers_.end())] {
    // It may hold the last reference to the call whose callback this is.
    const std::shared_ptr<Exchange> keep = std::move(watcher->exchange);
    watchers_.erase(watcher);
  });
  call.Write(wire::EncodeHealthCheckResponse(health));
  return true;
}

bool HealthWatchers::Has(const Exchange& exchange) const {
  return std::ranges::any_of(
      watchers_, [&](const Watcher& watcher) { return watcher.exchange.get() == &exchange; });
}

void HealthWatchers::Update(const LoopContext& context) {
  for (Watcher& watcher : watchers_) {
    const wire::Health health = HealthOf(context, watcher.service);
    if (health == std::exchange(watcher.told, health)) continue;
    watcher.exchange->Write(wire::EncodeHealthCheckResponse(health));
  }
}

void HealthWatchers::End(const absl::Status& status) {
  const std::list<Watcher> ended = std::exchange(watchers_, {});
  for (const Watcher& watcher : ended) watcher.exchange->Send(MakeGrpcEnd(status));
}

}  // namespace tensord::front
