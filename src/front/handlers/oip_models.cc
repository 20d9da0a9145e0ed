// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/oip_models.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"
#include "front/handlers/authorize.h"
#include "front/handlers/lookup.h"
#include "front/handlers/oip.h"
#include "front/handlers/oip_statistics.h"
#include "front/handlers/probes.h"
#include "front/handlers/reply.h"
#include "wire/chars.h"
#include "wire/oip/cold.h"

namespace tensord::front {
namespace {

// Over REST, the status alone tells it; KServe's clients read the body of a good one.
void ReplyFlag(const LoopContext& context, Exchange& exchange, bool value, std::string body,
               std::string_view otherwise) {
  if (value) return ReplyJson(exchange, std::move(body), context.cors());
  ReplyJsonError(exchange, 400, otherwise, context.cors());
}

bool ModelReady(const LoopContext& context, const tensor::ModelSpec& spec) {
  if (context.server->draining.load(std::memory_order_relaxed)) return false;
  const models::VersionSpec wanted{.model = spec.name, .version = spec.version, .label = {}};
  return context.snapshot->Find(wanted, context.loop->Now()).ok();
}

std::vector<int64_t> ServedVersions(const LoopContext& context, const std::string& model) {
  std::vector<int64_t> versions;
  const auto at = context.snapshot->models.find(model);
  if (at == context.snapshot->models.end()) return versions;
  for (const models::VersionEntry& version : at->second->versions) {
    if (version.state == models::State::kAvailable) versions.push_back(version.number);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

tensor::ModelSpec OipSpecOf(const wire::OipRoute& route) {
  return {.name = route.model, .version = route.version, .version_label = {}, .signature_name = {}};
}

using OipPrinter = std::string (*)(const wire::OipModel&);

absl::StatusOr<std::string> OipMetadata(const LoopContext& context, Exchange& exchange,
                                        const tensor::ModelSpec& spec, OipPrinter print) {
  exchange.trace().model = spec.name;
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kRead, spec.name));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Servable> servable,
                   FindServable(context, spec, exchange.trace()));
  const int signature = DefaultOipSignature(servable->signatures);
  return print({.name = servable->model,
                .versions = ServedVersions(context, servable->model),
                .signature = signature < 0
                                 ? nullptr
                                 : &servable->signatures[static_cast<size_t>(signature)]});
}

void DescribeGrpc(const LoopContext& context, Exchange& exchange,
                  std::span<const std::byte> message, OipPrinter print) {
  const absl::StatusOr<tensor::ModelSpec> spec = wire::ParseOipModelRequest(wire::Chars(message));
  ReplyGrpcResult(exchange, spec.ok() ? OipMetadata(context, exchange, *spec, print)
                                      : absl::StatusOr<std::string>(spec.status()));
}

std::string_view IndexState(const models::VersionEntry& version) {
  switch (version.state) {
    case models::State::kAvailable:
      return "READY";
    case models::State::kStart:
    case models::State::kLoading:
      return "LOADING";
    case models::State::kUnloading:
      return "UNLOADING";
    case models::State::kEnd:
      break;
  }
  return "UNAVAILABLE";
}

std::vector<wire::OipIndexEntry> Index(const LoopContext& context, bool ready_only) {
  std::vector<wire::OipIndexEntry> entries;
  for (const auto& [name, model] : context.snapshot->models) {
    for (const models::VersionEntry& version : model->versions) {
      const bool ready = version.state == models::State::kAvailable;
      if (ready_only && !ready) continue;
      entries.push_back({.name = name,
                         .version = version.number,
                         .ready = ready,
                         .state = std::string(IndexState(version)),
                         .reason = std::string(base::Message(version.status))});
    }
    if (model->versions.empty() && !ready_only) {
      entries.push_back({.name = name,
                         .state = "UNAVAILABLE",
                         .reason = std::string(base::Message(model->source))});
    }
  }
  return entries;
}

absl::StatusOr<std::string> IndexMessage(const LoopContext& context, Exchange& exchange,
                                         std::span<const std::byte> message) {
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kManage, {}));
  ASSIGN_OR_RETURN(const bool ready, wire::ParseOipIndexRequest(wire::Chars(message)));
  return wire::EncodeOipIndex(Index(context, ready));
}

absl::StatusOr<std::string> IndexBody(const LoopContext& context, Exchange& exchange) {
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kManage, {}));
  ASSIGN_OR_RETURN(const bool ready, wire::ReadOipIndexBody(wire::Chars(exchange.body())));
  return wire::PrintOipIndex(Index(context, ready));
}

enum class Change : uint8_t { kLoad, kUnload };

// `reply` gets the outcome on the exchange's loop.
void ChangeModel(const LoopContext& context, const std::shared_ptr<Exchange>& exchange,
                 Change change, absl::StatusOr<std::string> model, absl::Time deadline,
                 std::function<void(absl::Status)> reply) {
  if (!model.ok()) return reply(model.status());
  exchange->trace().model = *model;
  const absl::Status allowed = Authorize(context, exchange->head(), Operation::kManage, *model);
  if (!allowed.ok()) return reply(allowed);
  context.server->set_loaded(*std::move(model), change == Change::kLoad, deadline, *context.loop,
                             std::move(reply));
}

void ChangeGrpc(const LoopContext& context, std::shared_ptr<Exchange> exchange,
                const GrpcHead& head, Change change, std::span<const std::byte> message) {
  absl::StatusOr<std::string> model = wire::ParseOipRepositoryRequest(
      wire::Chars(message), /*may_have_parameters=*/change == Change::kUnload);
  ChangeModel(context, exchange, change, std::move(model), head.deadline,
              [exchange](const absl::Status& status) {
                ReplyGrpc(*exchange, status, {}, RetryAfterOf(status, {}));
              });
}

void ChangeRest(const LoopContext& context, std::shared_ptr<Exchange> exchange, Change change,
                const std::string& name) {
  absl::StatusOr<std::string> model = name;
  if (change == Change::kLoad) {
    const absl::Status body = wire::CheckOipLoadBody(wire::Chars(exchange->body()));
    if (!body.ok()) model = body;
  }
  ChangeModel(context, exchange, change, std::move(model), absl::InfiniteFuture(),
              [exchange, &context](const absl::Status& status) {
                ReplyJsonResult(*exchange, status.ok() ? "{}" : absl::StatusOr<std::string>(status),
                                context.cors());
              });
}

wire::OipServer ThisServer() { return {.version = TENSORD_VERSION}; }

// The probes, answered whatever the models do.
void ProbeRest(const LoopContext& context, Exchange& exchange, const wire::OipRoute& route) {
  const absl::Status allowed = Authorize(context, exchange.head(), Operation::kProbe, route.model);
  if (!allowed.ok()) return ReplyJsonError(exchange, allowed, context.cors());
  switch (route.kind) {
    case wire::OipKind::kReady:
      return ReplyFlag(context, exchange, context.ready(), R"({"ready":true})",
                       "the server is not ready; GET /readyz says why");
    case wire::OipKind::kModelReady:
      return ReplyFlag(context, exchange, ModelReady(context, OipSpecOf(route)),
                       wire::PrintOipModelReady(route.model),
                       base::Cat("model \"", route.model, "\" is not ready; GET /readyz says why"));
    default:
      return ReplyFlag(context, exchange, true, R"({"live":true})", {});
  }
}

}  // namespace

void OipLiveGrpc(LoopContext&, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                 std::span<const std::byte>) {
  ReplyGrpc(*exchange, absl::OkStatus(), wire::EncodeOipFlag(true));
}

void OipReadyGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                  std::span<const std::byte>) {
  ReplyGrpc(*exchange, absl::OkStatus(), wire::EncodeOipFlag(context.ready()));
}

void OipModelReadyGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                       std::span<const std::byte> message) {
  const absl::StatusOr<tensor::ModelSpec> spec = wire::ParseOipModelRequest(wire::Chars(message));
  if (!spec.ok()) return ReplyGrpc(*exchange, spec.status());
  // OnHead asked for probes of any model.
  const absl::Status allowed = Authorize(context, exchange->head(), Operation::kProbe, spec->name);
  if (!allowed.ok()) return ReplyGrpc(*exchange, allowed);
  ReplyGrpc(*exchange, absl::OkStatus(), wire::EncodeOipFlag(ModelReady(context, *spec)));
}

void OipServerGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                   std::span<const std::byte>) {
  const absl::Status allowed = Authorize(context, exchange->head(), Operation::kRead, {});
  ReplyGrpc(*exchange, allowed, allowed.ok() ? wire::EncodeOipServer(ThisServer()) : "");
}

void OipModelGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                  std::span<const std::byte> message) {
  DescribeGrpc(context, *exchange, message, wire::EncodeOipModel);
}

void OipConfigGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                   std::span<const std::byte> message) {
  DescribeGrpc(context, *exchange, message, wire::EncodeOipConfig);
}

void OipIndexGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                  std::span<const std::byte> message) {
  ReplyGrpcResult(*exchange, IndexMessage(context, *exchange, message));
}

void OipLoadGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                 std::span<const std::byte> message) {
  ChangeGrpc(context, std::move(exchange), head, Change::kLoad, message);
}

void OipUnloadGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                   std::span<const std::byte> message) {
  ChangeGrpc(context, std::move(exchange), head, Change::kUnload, message);
}

void OipRest(LoopContext& context, std::shared_ptr<Exchange> exchange,
             const wire::OipRoute& route) {
  switch (route.kind) {
    case wire::OipKind::kInfer:
      return OipInferRest(context, std::move(exchange), route);
    case wire::OipKind::kLive:
    case wire::OipKind::kReady:
    case wire::OipKind::kModelReady:
      return ProbeRest(context, *exchange, route);
    case wire::OipKind::kServer: {
      const absl::Status allowed = Authorize(context, exchange->head(), Operation::kRead, {});
      if (!allowed.ok()) return ReplyJsonResult(*exchange, allowed, context.cors());
      return ReplyJsonResult(*exchange, wire::PrintOipServer(ThisServer()), context.cors());
    }
    case wire::OipKind::kModel:
      return ReplyJsonResult(*exchange,
                             OipMetadata(context, *exchange, OipSpecOf(route), wire::PrintOipModel),
                             context.cors());
    case wire::OipKind::kConfig:
      return ReplyJsonResult(
          *exchange, OipMetadata(context, *exchange, OipSpecOf(route), wire::PrintOipConfig),
          context.cors());
    case wire::OipKind::kStatistics:
      return OipStatisticsRest(context, *exchange, route);
    case wire::OipKind::kIndex:
      return ReplyJsonResult(*exchange, IndexBody(context, *exchange), context.cors());
    case wire::OipKind::kLoad:
      return ChangeRest(context, std::move(exchange), Change::kLoad, route.model);
    case wire::OipKind::kUnload:
      return ChangeRest(context, std::move(exchange), Change::kUnload, route.model);
    case wire::OipKind::kPreflight:
      return Preflight(*exchange, context.cors());
    case wire::OipKind::kBad:
    case wire::OipKind::kOutside:
      return ReplyJsonError(*exchange, route.http_status, base::Message(route.error),
                            context.cors());
  }
}

}  // namespace tensord::front
