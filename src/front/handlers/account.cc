// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/account.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/limits.h"
#include "front/grpc.h"

namespace tensord::front {
namespace {

using Stages = std::array<absl::Duration, obs::kStages>;

// The stages between the stamps. A stage that was left out takes no time, and one that ended in the
// same iteration of the loop as it began may have been stamped a little before its beginning.
Stages StagesOf(const Ending& ending) {
  const Trace& trace = ending.trace;
  const absl::Time ends[] = {trace.read, trace.parsed, trace.started, trace.answered, ending.at};
  Stages stages;
  absl::Time from = ending.head.arrived;
  // A request that was refused before a stage spent its time in the stage that refused it.
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool last_stamp = i + 1 < stages.size() && ends[i] == absl::InfinitePast();
    const absl::Time until = std::max(from, last_stamp ? trace.answered : ends[i]);
    stages[i] = until - from;
    from = until;
  }
  return stages;
}

obs::RequestFacts FactsOf(const Ending& ending) {
  const Trace& trace = ending.trace;
  obs::RequestFacts facts{.method = trace.method,
                          .transport = obs::Transport::kRest,
                          .code = ending.code,
                          .total = ending.at - ending.head.arrived,
                          .rows = trace.rows};
  // A head that was refused has not been looked at.
  if (trace.grpc || (trace.method == obs::Method::kOther && IsGrpc(ending.head))) {
    facts.transport = obs::Transport::kGrpc;
  }
  facts.rest_api = facts.transport == obs::Transport::kRest &&
                   base::StartsWithIgnoringCase(ending.head.target, "/v1/");
  if (trace.answered != absl::InfinitePast()) facts.stages = StagesOf(ending);
  if (trace.batch_rows > 0) facts.run_time = trace.run_time;
  return facts;
}

obs::ModelMetrics& ModelOf(const LoopContext& context, const Trace& trace) {
  if (trace.servable != nullptr) return *trace.servable->metrics;
  const bool configured = context.snapshot->models.contains(trace.model);
  return configured ? context.server->metrics->Model(trace.model)
                    : context.server->metrics->unknown();
}

// With --enable_batching, for the signatures that it batches.
void CountBatched(const LoopContext& context, const Trace& trace, absl::Duration wait) {
  const auto index = static_cast<size_t>(trace.signature);
  if (!trace.servable->batched[index]) return;
  context.server->metrics->runs().CountBatchedCall(wait, trace.rows,
                                                   trace.servable->signatures[index].inputs.size());
}

void Count(const LoopContext& context, const Ending& ending, const obs::RequestFacts& facts) {
  const Trace& trace = ending.trace;
  obs::ModelMetrics& model = ModelOf(context, trace);
  model.Count(facts);
  obs::VersionMetrics& version =
      trace.servable == nullptr ? model.versionless() : *trace.servable->version_metrics;
  if (trace.signature >= 0) {
    trace.servable->signature_metrics[static_cast<size_t>(trace.signature)]->Count(facts);
  } else {
    version.Signature("")->Count(facts);
  }
  if (facts.stages) version.CountStages(facts.transport, *facts.stages);
  if (trace.signature >= 0 && trace.batch_rows > 0 && facts.stages) {
    CountBatched(context, trace, (*facts.stages)[static_cast<size_t>(obs::Stage::kQueue)]);
  }
}

AccessEntry EntryOf(const Ending& ending, const obs::RequestFacts& facts) {
  const Trace& trace = ending.trace;
  const RequestHead& head = ending.head;
  AccessEntry entry{.at = ending.at,
                    .transport = facts.transport,
                    .method = facts.method,
                    .code = facts.code,
                    .http_status = ending.http_status,
                    .delivered = ending.delivered,
                    .peer = head.peer,
                    .http_method = head.method,
                    .target = head.target.substr(0, limits::kAccessLogTextBytesMax),
                    .model = trace.model.substr(0, limits::kAccessLogTextBytesMax)};
  if (trace.servable != nullptr) entry.version = trace.servable->version;
  if (trace.signature >= 0) {
    entry.signature = trace.servable->signatures[static_cast<size_t>(trace.signature)].name;
  }
  const std::string_view id = head.Find("x-request-id").value_or("");
  entry.request_id = id.substr(0, limits::kAccessLogTextBytesMax);
  entry.bytes_in = trace.body_bytes;
  entry.bytes_out = ending.answer_bytes;
  entry.total = facts.total;
  entry.stages = facts.stages;
  entry.run_time = facts.run_time;
  entry.rows = trace.rows;
  entry.batch_rows = trace.batch_rows;
  return entry;
}

}  // namespace

void Account(const LoopContext& context, const Ending& ending) {
  const obs::RequestFacts facts = FactsOf(ending);
  if (facts.method != obs::Method::kProbe) Count(context, ending, facts);
  AccessLog* const log = context.server->access_log;
  if (log != nullptr) log->Write(EntryOf(ending, facts));
}

}  // namespace tensord::front
