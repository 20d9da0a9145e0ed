// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/predict.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "front/handlers/authorize.h"
#include "front/handlers/criticality.h"
#include "front/handlers/lookup.h"
#include "front/handlers/reply.h"
#include "front/handlers/submit.h"
#include "wire/bind.h"
#include "wire/chars.h"
#include "wire/json/print.h"
#include "wire/json/request.h"
#include "wire/predict_encode.h"
#include "wire/predict_walk.h"

namespace tensord::front {
namespace {

// A call that passed every check, with what its answer needs.
struct Ready {
  Target target;
  std::shared_ptr<const tensor::PredictRequest> request;
  wire::BoundCall bound;
};

absl::StatusOr<Ready> BindTo(Target target, tensor::PredictRequest request) {
  ASSIGN_OR_RETURN(wire::BoundCall bound, wire::Bind(request, target.definition()));
  return Ready{.target = std::move(target),
               .request = std::make_shared<tensor::PredictRequest>(std::move(request)),
               .bound = std::move(bound)};
}

absl::StatusOr<Ready> PrepareGrpc(const LoopContext& context, Exchange& exchange,
                                  std::span<const std::byte> message) {
  ASSIGN_OR_RETURN(tensor::PredictRequest request, wire::ParsePredict(wire::Chars(message)));
  RETURN_IF_ERROR(Authorize(exchange.head(), Operation::kInfer, request.spec.name));
  ASSIGN_OR_RETURN(Target target,
                   FindTarget(context, request.spec, SignatureWords::kGrpc, exchange.trace()));
  return BindTo(std::move(target), std::move(request));
}

// JSON is only understood with the signature at hand: its numbers take their type from there.
absl::StatusOr<Ready> PrepareRest(const LoopContext& context, Exchange& exchange,
                                  const wire::RestRoute& route, bool* row_format) {
  ASSIGN_OR_RETURN(const wire::JsonRequest json,
                   wire::ScanJsonRequest(wire::Chars(exchange.body())));
  RETURN_IF_ERROR(Authorize(exchange.head(), Operation::kInfer, route.model));
  const tensor::ModelSpec spec{.name = route.model,
                               .version = route.version,
                               .version_label = route.label,
                               .signature_name = json.signature_name};
  absl::StatusOr<Target> found = FindTarget(context, spec, SignatureWords::kRest, exchange.trace());
  if (!found.ok()) RETURN_IF_ERROR(wire::CheckSyntax(json));
  ASSIGN_OR_RETURN(Target target, std::move(found));
  ASSIGN_OR_RETURN(tensor::PredictRequest request, wire::JsonTensors(json, target.definition()));
  *row_format = json.row_format;
  return BindTo(std::move(target), std::move(request));
}

std::vector<tensor::NamedTensor> NameOutputs(const Ready& ready, const sched::CallResult& result) {
  std::vector<tensor::NamedTensor> named;
  named.reserve(ready.bound.outputs.size());
  for (const int index : ready.bound.outputs) {
    const auto i = static_cast<size_t>(index);
    named.push_back({ready.target.definition().outputs[i].name, result.outputs[i]});
  }
  return named;
}

// A failed run whose inputs did not fit the signature gets that said behind the runtime's words.
absl::Status Explain(const Ready& ready, const absl::Status& status) {
  if (status.ok() || ready.bound.fits_signature) return status;
  const std::string misfits = wire::DescribeMisfits(ready.bound, ready.target.definition());
  return absl::Status(status.code(), base::Cat(base::Message(status), " (", misfits, ")"));
}

tensor::ModelSpec Answered(const Ready& ready) {
  return {.name = ready.target.servable->model,
          .version = ready.target.servable->version,
          .version_label = {},
          .signature_name = ready.target.definition().name};
}

absl::StatusOr<std::string> EncodeRest(const Ready& ready, const sched::CallResult& result,
                                       bool row_format) {
  RETURN_IF_ERROR(Explain(ready, result.status));
  return wire::PrintPredictions(row_format, NameOutputs(ready, result));
}

absl::StatusOr<std::string> EncodeGrpc(const Ready& ready, const sched::CallResult& result,
                                       bool tensor_content) {
  RETURN_IF_ERROR(Explain(ready, result.status));
  return wire::EncodePredictResponse(Answered(ready), NameOutputs(ready, result), tensor_content);
}

// A sampled call and its answer go into the request log. gRPC's messages are there already.
void LogGrpc(const Ready& ready, std::span<const std::byte> body, const std::string& answer) {
  RequestLog& log = *ready.target.servable->request_log;
  if (!log.Sample()) return;
  const std::string_view message = wire::Chars(body.subspan(kGrpcPrefixBytes));
  log.Write({.request = std::string(message), .response = answer, .answered = Answered(ready)});
}

void LogRest(const Ready& ready, const sched::CallResult& result) {
  RequestLog& log = *ready.target.servable->request_log;
  if (!log.Sample()) return;
  absl::StatusOr<std::string> request =
      wire::EncodePredictRequest(Answered(ready), ready.request->inputs);
  absl::StatusOr<std::string> response = wire::EncodePredictResponse(
      Answered(ready), NameOutputs(ready, result), /*as_tensor_content=*/true);
  if (!request.ok() || !response.ok()) return;
  log.Write({.request = *std::move(request),
             .response = *std::move(response),
             .answered = Answered(ready)});
}

Submission MakeSubmission(const std::shared_ptr<Exchange>& exchange,
                          const std::shared_ptr<Ready>& ready, absl::Time deadline) {
  Submission submission;
  submission.servable = ready->target.servable;
  submission.exchange = exchange;
  submission.request = ready->request;
  submission.call.signature = ready->target.signature;
  submission.call.inputs = ready->bound.inputs;
  submission.call.rows = ready->bound.fits_signature ? ready->bound.rows : -1;
  submission.call.arrived = exchange->head().arrived;
  submission.call.deadline = deadline;
  // A value that is none was refused with the head.
  submission.call.criticality =
      CriticalityOf(exchange->head()).value_or(tensor::Criticality::kCritical);
  return submission;
}

}  // namespace

void PredictGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                 std::span<const std::byte> message) {
  const absl::Time arrived = exchange->head().arrived;
  absl::StatusOr<Ready> prepared = PrepareGrpc(context, *exchange, message);
  if (!prepared.ok()) {
    ReplyGrpc(*exchange, prepared.status(), {}, RetryAfterOf(prepared.status(), {}));
    return;
  }
  auto ready = std::make_shared<Ready>(*std::move(prepared));
  Submission submission =
      MakeSubmission(exchange, ready, std::min(head.deadline, arrived + limits::kDeadlineDefault));
  submission.call.retry = head.previous_attempts > 0;
  submission.done = [&context, exchange, ready](const sched::CallResult& result) {
    const bool packed = context.server->options->enable_serialization_as_tensor_content;
    absl::StatusOr<std::string> body = EncodeGrpc(*ready, result, packed);
    if (body.ok()) LogGrpc(*ready, exchange->body(), *body);
    ReplyGrpc(*exchange, body.status(), body.ok() ? *std::move(body) : std::string(),
              result.retry_after);
  };
  Submit(std::move(submission));
}

void PredictRest(LoopContext& context, std::shared_ptr<Exchange> exchange,
                 const wire::RestRoute& route) {
  const config::ServerOptions& options = *context.server->options;
  const bool cors = options.rest_api_enable_cors_support;
  const absl::Time arrived = exchange->head().arrived;
  bool row_format = true;
  absl::StatusOr<Ready> prepared = PrepareRest(context, *exchange, route, &row_format);
  if (!prepared.ok()) {
    ReplyJsonError(*exchange, prepared.status(), cors, RetryAfterOf(prepared.status(), {}));
    return;
  }
  auto ready = std::make_shared<Ready>(*std::move(prepared));
  const absl::Duration limit = options.rest_api_timeout_in_ms > 0
                                   ? absl::Milliseconds(options.rest_api_timeout_in_ms)
                                   : limits::kDeadlineDefault;
  Submission submission = MakeSubmission(exchange, ready, arrived + limit);
  submission.done = [exchange, ready, row_format, cors](const sched::CallResult& result) {
    absl::StatusOr<std::string> body = EncodeRest(*ready, result, row_format);
    if (body.ok()) LogRest(*ready, result);
    if (body.ok()) {
      ReplyJson(*exchange, *std::move(body), cors);
    } else {
      ReplyJsonError(*exchange, body.status(), cors, result.retry_after);
    }
  };
  Submit(std::move(submission));
}

}  // namespace tensord::front
