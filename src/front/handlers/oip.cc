// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/oip.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "front/handlers/authorize.h"
#include "front/handlers/long_work.h"
#include "front/handlers/lookup.h"
#include "front/handlers/pack_answer.h"
#include "front/handlers/run_call.h"
#include "wire/bind.h"
#include "wire/chars.h"
#include "wire/oip/infer_encode.h"
#include "wire/oip/infer_json.h"
#include "wire/oip/infer_print.h"
#include "wire/oip/infer_walk.h"

namespace tensord::front {
namespace {

// What the answer has of its request.
struct Form {
  std::string id;
  bool raw = true;                // gRPC.
  std::vector<bool> binary = {};  // REST, an entry an output.
  wire::NonFinite non_finite = wire::NonFinite::kError;
};

wire::OipAnswered AnsweredOf(const Form& form, const PreparedCall& call) {
  const Servable& servable = *call.target.servable;
  return {.id = form.id, .model = servable.model, .version = servable.version};
}

absl::Time DeadlineOf(const wire::OipUrgency& urgency, absl::Time arrived) {
  if (urgency.timeout_micros == 0) return absl::InfiniteFuture();
  return arrived + absl::Microseconds(std::min<uint64_t>(urgency.timeout_micros, INT64_MAX));
}

absl::StatusOr<PreparedCall> BindOip(Target target, std::shared_ptr<wire::OipRequest> oip,
                                     absl::Time arrived) {
  ASSIGN_OR_RETURN(wire::BoundCall bound, wire::Bind(oip->request, target.definition()));
  const tensor::PredictRequest* const request = &oip->request;
  PreparedCall prepared{.target = std::move(target),
                        .request = std::shared_ptr<const tensor::PredictRequest>(oip, request),
                        .bound = std::move(bound),
                        .encode = {},
                        .deadline = DeadlineOf(oip->urgency, arrived),
                        .priority = oip->urgency.priority};
  prepared.messages = PredictMessages;
  return prepared;
}

absl::StatusOr<PreparedCall> PrepareOipGrpc(const LoopContext& context, Exchange& exchange,
                                            std::span<const std::byte> message) {
  ASSIGN_OR_RETURN(const tensor::ModelSpec spec, wire::WalkOipSpec(wire::Chars(message)));
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kInfer, spec.name));
  ASSIGN_OR_RETURN(Target target,
                   FindTarget(context, spec, SignatureWords::kOip, exchange.trace()));
  ASSIGN_OR_RETURN(wire::OipRequest walked, wire::WalkOipInfer(wire::Chars(message)));
  auto oip = std::make_shared<wire::OipRequest>(std::move(walked));
  Form form{.id = oip->id, .raw = oip->raw};
  ASSIGN_OR_RETURN(PreparedCall prepared,
                   BindOip(std::move(target), std::move(oip), exchange.head().arrived));
  prepared.encode = [form = std::move(form)](const PreparedCall& call,
                                             const sched::CallResult& result) {
    return wire::EncodeOipResponse(AnsweredOf(form, call), NameOutputs(call, result), form.raw);
  };
  return prepared;
}

wire::NonFinite NonFiniteOf(const LoopContext& context) {
  return context.server->options->oip_json_non_finite == "null" ? wire::NonFinite::kNull
                                                                : wire::NonFinite::kError;
}

// Which outputs of the call are wanted as bytes.
std::vector<bool> BinaryOf(const wire::OipRequest& oip, size_t outputs) {
  if (oip.request.output_filter.empty()) return std::vector<bool>(outputs, oip.binary_default);
  return oip.binary;
}

absl::StatusOr<PreparedCall> PrepareOipRest(const LoopContext& context, Exchange& exchange,
                                            const wire::OipRoute& route,
                                            absl::StatusOr<wire::OipRequest> parsed) {
  const tensor::ModelSpec spec{
      .name = route.model,
      .version = route.version,
      .version_label = {},
      .signature_name = parsed.ok() ? parsed->request.spec.signature_name : ""};
  ASSIGN_OR_RETURN(Target target,
                   FindTarget(context, spec, SignatureWords::kOip, exchange.trace()));
  RETURN_IF_ERROR(parsed.status());
  auto oip = std::make_shared<wire::OipRequest>(*std::move(parsed));
  Form form{.id = oip->id, .non_finite = NonFiniteOf(context)};
  ASSIGN_OR_RETURN(PreparedCall prepared, BindOip(std::move(target), oip, exchange.head().arrived));
  form.binary = BinaryOf(*oip, prepared.bound.outputs.size());
  prepared.packed_as = AcceptedFormat(exchange.head().Find("accept-encoding").value_or(""));
  prepared.json_bytes = std::make_shared<std::optional<size_t>>();
  prepared.encode = [form = std::move(form)](
                        const PreparedCall& call,
                        const sched::CallResult& result) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(wire::OipBody body,
                     wire::PrintOipResponse(AnsweredOf(form, call), NameOutputs(call, result),
                                            form.binary, form.non_finite));
    *call.json_bytes = body.json_bytes;
    return std::move(body.text);
  };
  return prepared;
}

absl::StatusOr<size_t> JsonBytesOf(const Exchange& exchange) {
  return wire::OipJsonBytes(exchange.head().Find("inference-header-content-length"),
                            exchange.body().size());
}

}  // namespace

void OipInferGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                  std::span<const std::byte> message) {
  absl::StatusOr<PreparedCall> prepared = PrepareOipGrpc(context, *exchange, message);
  RunGrpcCall(context, std::move(exchange), head, std::move(prepared));
}

void OipInferRest(LoopContext& context, std::shared_ptr<Exchange> exchange,
                  const wire::OipRoute& route) {
  const absl::Status allowed = Authorize(context, exchange->head(), Operation::kInfer, route.model);
  if (!allowed.ok()) return RunRestCall(context, std::move(exchange), allowed);
  const absl::StatusOr<size_t> json_bytes = JsonBytesOf(*exchange);
  if (!json_bytes.ok()) return RunRestCall(context, std::move(exchange), json_bytes.status());
  const auto parse = [](const Exchange& of, size_t bytes) {
    return wire::ParseOipInfer(wire::Chars(of.body()), bytes);
  };
  const auto finish = [&context](std::shared_ptr<Exchange> of, const wire::OipRoute& where,
                                 absl::StatusOr<wire::OipRequest> parsed) {
    absl::StatusOr<PreparedCall> prepared = PrepareOipRest(context, *of, where, std::move(parsed));
    RunRestCall(context, std::move(of), std::move(prepared));
  };
  if (*json_bytes < kLongBodyBytes) {
    absl::StatusOr<wire::OipRequest> parsed = parse(*exchange, *json_bytes);
    return finish(std::move(exchange), route, std::move(parsed));
  }
  struct LongRequest {
    std::shared_ptr<Exchange> exchange;
    wire::OipRoute route;
    absl::StatusOr<wire::OipRequest> parsed = wire::OipRequest();
  };
  loop::EventLoop& here = exchange->loop();
  auto of =
      std::make_shared<LongRequest>(LongRequest{.exchange = std::move(exchange), .route = route});
  RunLong(
      *context.server, here,
      [of, parse, bytes = *json_bytes] { of->parsed = parse(*of->exchange, bytes); },
      [of, finish] { finish(std::move(of->exchange), of->route, std::move(of->parsed)); });
}

}  // namespace tensord::front
