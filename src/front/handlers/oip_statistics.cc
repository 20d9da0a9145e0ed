// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/oip_statistics.h"

#include <string>
#include <vector>

#include "base/status_macros.h"
#include "front/handlers/authorize.h"
#include "front/handlers/lookup.h"
#include "front/handlers/reply.h"
#include "wire/chars.h"
#include "wire/oip/cold.h"
#include "wire/oip/statistics.h"

namespace tensord::front {
namespace {

using Statistics = std::vector<wire::OipStatistics>;

wire::OipDuration DurationOf(const obs::Totals& totals) {
  return {.count = totals.count, .nanoseconds = static_cast<uint64_t>(totals.microseconds * 1000)};
}

wire::OipStatistics StatisticsOf(const Servable& servable) {
  const obs::InferenceTotals totals = servable.version_metrics->Total();
  // The stages also have the calls that ask for metadata; those run nothing and take no time there.
  const uint64_t calls = totals.succeeded.count + totals.failed.count;
  const auto stage = [&totals, calls](obs::Stage which) {
    wire::OipDuration duration = DurationOf(totals.stages[static_cast<size_t>(which)]);
    duration.count = calls;
    return duration;
  };
  return {.name = servable.model,
          .version = servable.version,
          .rows = totals.rows,
          .runs = totals.runs,
          .success = DurationOf(totals.succeeded),
          .fail = DurationOf(totals.failed),
          .queue = stage(obs::Stage::kQueue),
          .compute_input = stage(obs::Stage::kParse),
          .compute_infer = stage(obs::Stage::kRun),
          .compute_output = stage(obs::Stage::kWrite)};
}

// Of the versions of one model that serve.
void AddModel(const models::ModelEntry& model, Statistics* statistics) {
  for (const models::VersionEntry& version : model.versions) {
    const auto servable = std::static_pointer_cast<const Servable>(version.handle);
    if (version.state != models::State::kAvailable || servable == nullptr) continue;
    statistics->push_back(StatisticsOf(*servable));
  }
}

absl::StatusOr<Statistics> Collect(const LoopContext& context, Exchange& exchange,
                                   const tensor::ModelSpec& spec) {
  const RequestHead& caller = exchange.head();
  exchange.trace().model = spec.name;
  RETURN_IF_ERROR(Authorize(context, caller, Operation::kRead, spec.name));
  Statistics statistics;
  if (spec.name.empty()) {
    for (const auto& [name, model] : context.snapshot->models) {
      if (Permits(context, caller, Operation::kRead, name)) AddModel(*model, &statistics);
    }
    return statistics;
  }
  // Finds the words for what is not there.
  ASSIGN_OR_RETURN(const std::shared_ptr<const Servable> servable,
                   FindServable(context, spec, exchange.trace()));
  if (spec.version.has_value()) return Statistics{StatisticsOf(*servable)};
  AddModel(*context.snapshot->models.at(spec.name), &statistics);
  return statistics;
}

absl::StatusOr<std::string> StatisticsMessage(const LoopContext& context, Exchange& exchange,
                                              std::span<const std::byte> message) {
  ASSIGN_OR_RETURN(const tensor::ModelSpec spec, wire::ParseOipModelRequest(wire::Chars(message)));
  ASSIGN_OR_RETURN(const Statistics statistics, Collect(context, exchange, spec));
  return wire::EncodeOipStatistics(statistics);
}

absl::StatusOr<std::string> StatisticsBody(const LoopContext& context, Exchange& exchange,
                                           const wire::OipRoute& route) {
  const tensor::ModelSpec spec{
      .name = route.model, .version = route.version, .version_label = {}, .signature_name = {}};
  ASSIGN_OR_RETURN(const Statistics statistics, Collect(context, exchange, spec));
  return wire::PrintOipStatistics(statistics);
}

}  // namespace

void OipStatisticsGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead&,
                       std::span<const std::byte> message) {
  ReplyGrpcResult(*exchange, StatisticsMessage(context, *exchange, message));
}

void OipStatisticsRest(const LoopContext& context, Exchange& exchange,
                       const wire::OipRoute& route) {
  ReplyJsonResult(exchange, StatisticsBody(context, exchange, route), context.cors());
}

}  // namespace tensord::front
