// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/models.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "front/handlers/authorize.h"
#include "front/handlers/lookup.h"
#include "front/handlers/reply.h"
#include "wire/cold.h"

namespace tensord::front {
namespace {

wire::VersionStatus StatusOf(const models::VersionEntry& version) {
  return {.version = version.number,
          .state = static_cast<int>(version.state),
          .status = version.status};
}

wire::VersionDetails DetailsOf(const models::VersionEntry& version) {
  return {.version = version.number,
          .stateful_reason = version.stateful_reason,
          .sandbox = version.sandbox,
          .sandbox_grade = version.sandbox_grade,
          .sandbox_stage = version.sandbox_stage,
          .warnings = version.warnings,
          .alone = version.alone,
          .warm_up_source = version.warm_up_source,
          .warm_up_runs = version.warm_up_runs,
          .warm_up_milliseconds = absl::ToInt64Milliseconds(version.warm_up_time),
          .sessions = version.two_sessions ? 2 : 1,
          .replicas = version.replicas_live,
          .replicas_wanted = version.replicas_wanted,
          .restarts = version.restarts,
          .memory_bytes = static_cast<int64_t>(version.memory_bytes)};
}

absl::StatusOr<std::vector<wire::VersionStatus>> ListVersions(const LoopContext& context,
                                                              Exchange& exchange,
                                                              const tensor::ModelSpec& spec) {
  exchange.trace().model = spec.name;
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kRead, spec.name));
  ASSIGN_OR_RETURN(const std::vector<const models::VersionEntry*> versions,
                   context.snapshot->Status(spec.name, spec.version));
  std::vector<wire::VersionStatus> list;
  list.reserve(versions.size());
  for (const models::VersionEntry* version : versions) list.push_back(StatusOf(*version));
  return list;
}

absl::StatusOr<std::string> StatusMessage(const LoopContext& context, Exchange& exchange,
                                          std::span<const std::byte> message) {
  ASSIGN_OR_RETURN(const tensor::ModelSpec spec,
                   wire::ParseGetModelStatusRequest(wire::Chars(message)));
  ASSIGN_OR_RETURN(const std::vector<wire::VersionStatus> list,
                   ListVersions(context, exchange, spec));
  return wire::EncodeGetModelStatusResponse(list);
}

using Printer = absl::StatusOr<std::string> (*)(const tensor::ModelSpec&, std::string_view);

absl::StatusOr<std::string> Metadata(const LoopContext& context, Exchange& exchange,
                                     const tensor::ModelSpec& spec, Printer print) {
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kRead, spec.name));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Servable> servable,
                   FindServable(context, spec, exchange.trace()));
  const tensor::ModelSpec answered{.name = servable->model,
                                   .version = servable->version,
                                   .version_label = {},
                                   .signature_name = {}};
  return print(answered, servable->signature_def_map);
}

absl::StatusOr<std::string> MetadataMessage(const LoopContext& context, Exchange& exchange,
                                            std::span<const std::byte> message) {
  ASSIGN_OR_RETURN(const tensor::ModelSpec spec,
                   wire::ParseGetModelMetadataRequest(wire::Chars(message)));
  return Metadata(context, exchange, spec, wire::EncodeGetModelMetadataResponse);
}

using Increases = std::vector<std::pair<std::string, int64_t>>;

// So much earlier than the client's deadline that the answer comes before its own timer.
absl::Time AnswerBy(absl::Time now, absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return deadline;
  return deadline - std::clamp((deadline - now) / 20, absl::Milliseconds(10), absl::Seconds(1));
}

}  // namespace

void StatusGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                std::span<const std::byte> message) {
  ReplyGrpcResult(*exchange, StatusMessage(context, *exchange, message));
}

void StatusRest(const LoopContext& context, Exchange& exchange, const wire::RestRoute& route) {
  const auto list = ListVersions(context, exchange, SpecOf(route, /*signature_name=*/{}));
  ReplyJsonResult(
      exchange,
      list.ok() ? wire::PrintModelStatus(*list) : absl::StatusOr<std::string>(list.status()),
      context.cors());
}

void ListRest(const LoopContext& context, Exchange& exchange) {
  const bool cors = context.cors();
  const absl::Status allowed = Authorize(context, exchange.head(), Operation::kRead, {});
  if (!allowed.ok()) return ReplyJsonError(exchange, allowed, cors);
  std::vector<wire::ListedModel> list;
  for (const auto& [name, model] : context.snapshot->models) {
    if (!Permits(context, exchange.head(), Operation::kRead, name)) continue;
    wire::ListedModel listed{.name = name,
                             .labels = {model->labels.begin(), model->labels.end()},
                             .versions = {},
                             .details = {}};
    for (const models::VersionEntry& version : model->versions) {
      listed.versions.push_back(StatusOf(version));
      listed.details.push_back(DetailsOf(version));
    }
    list.push_back(std::move(listed));
  }
  ReplyJson(exchange, wire::PrintModelList(list), cors);
}

void MetadataGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                  std::span<const std::byte> message) {
  ReplyGrpcResult(*exchange, MetadataMessage(context, *exchange, message));
}

void MetadataRest(const LoopContext& context, Exchange& exchange, const wire::RestRoute& route) {
  ReplyJsonResult(
      exchange,
      Metadata(context, exchange, SpecOf(route, /*signature_name=*/{}), wire::PrintModelMetadata),
      context.cors());
}

void ReloadGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                std::span<const std::byte> message) {
  absl::Status allowed = Authorize(context, exchange->head(), Operation::kManage, {});
  if (!allowed.ok()) return ReplyGrpc(*exchange, allowed);
  absl::StatusOr<wire::ReloadConfigRequest> request =
      wire::ParseReloadConfigRequest(wire::Chars(message));
  if (!request.ok()) return ReplyGrpc(*exchange, request.status());
  const absl::Time deadline = AnswerBy(context.loop->Now(), head.deadline);
  context.server->reload(
      std::move(request->config), deadline, *context.loop,
      [exchange, metrics = context.server->all_metrics,
       before = context.server->all_metrics->CounterTotals(request->metric_names)](
          const absl::Status& status) {
        Increases increases;
        for (const auto& [name, total] : before) {
          increases.emplace_back(name, metrics->CounterTotals({name}).at(name) - total);
        }
        ReplyGrpc(*exchange, status, wire::EncodeReloadConfigResponse(status, increases));
      });
}

}  // namespace tensord::front
