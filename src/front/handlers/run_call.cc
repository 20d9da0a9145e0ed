// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/run_call.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "absl/time/time.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "front/handlers/client.h"
#include "front/handlers/criticality.h"
#include "front/handlers/long_work.h"
#include "front/handlers/pack_answer.h"
#include "front/handlers/reply.h"
#include "front/handlers/request_log.h"
#include "front/handlers/submit.h"
#include "wire/chars.h"
#include "wire/predict_encode.h"

namespace tensord::front {
namespace {

// A failed run whose inputs did not fit the signature gets that said behind the runtime's words.
absl::Status Explain(const PreparedCall& call, const absl::Status& status) {
  if (status.ok() || call.bound.fits_signature) return status;
  const std::string misfits = wire::DescribeMisfits(call.bound, call.target.definition());
  return absl::Status(status.code(), base::Cat(base::Message(status), " (", misfits, ")"));
}

// Which outputs can travel shows when they are there; only those that are asked for have to.
absl::Status CheckOutputs(const PreparedCall& call, const sched::CallResult& result) {
  const tensor::Signature& signature = call.target.definition();
  for (const int index : call.bound.outputs) {
    const auto i = static_cast<size_t>(index);
    if (result.outputs[i].dtype != tensor::DType::kInvalid) continue;
    return absl::InvalidArgumentError(
        base::Cat("output \"", signature.outputs[i].name, "\" of signature \"", signature.name,
                  "\" cannot be sent: it came with a rank above ", limits::kRankMax,
                  " or with another type than ", tensor::DTypeName(signature.outputs[i].dtype),
                  ", which the signature says; name other outputs in output_filter"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BodyOf(const PreparedCall& call, const sched::CallResult& result) {
  RETURN_IF_ERROR(Explain(call, result.status));
  RETURN_IF_ERROR(CheckOutputs(call, result));
  return call.encode(call, result);
}

// A sampled call and its answer go into the request log. The original's messages are there already.
void LogMessage(const PreparedCall& call, std::span<const std::byte> body,
                const std::string& answer) {
  RequestLog& log = *call.target.servable->request_log;
  if (!log.Sample()) return;
  log.Write({.call = call.logged_as,
             .request = std::string(wire::Chars(body.subspan(kGrpcPrefixBytes))),
             .response = answer,
             .answered = AnsweredSpec(*call.target.servable, call.target.signature)});
}

void LogAsMessages(const PreparedCall& call, const sched::CallResult& result) {
  RequestLog& log = *call.target.servable->request_log;
  if (!log.Sample()) return;
  absl::StatusOr<PreparedCall::Messages> messages = call.messages(call, result);
  if (!messages.ok()) return;
  log.Write({.call = call.logged_as,
             .request = std::move(messages->request),
             .response = std::move(messages->response),
             .answered = AnsweredSpec(*call.target.servable, call.target.signature)});
}

// Of the inputs, what lies in the body, into which a gRPC connection copied it.
uint64_t BytesIn(std::span<const std::byte> body, const std::vector<tensor::TensorView>& inputs) {
  uint64_t bytes = 0;
  const std::less<> less;
  for (const tensor::TensorView& input : inputs) {
    const bool inside = !less(input.bytes.data(), body.data()) &&
                        less(input.bytes.data(), body.data() + body.size());
    if (inside) bytes += input.bytes.size();
  }
  return bytes;
}

Submission MakeSubmission(const LoopContext& context, const std::shared_ptr<Exchange>& exchange,
                          const std::shared_ptr<PreparedCall>& call, absl::Time deadline) {
  Submission submission;
  submission.servable = call->target.servable;
  submission.exchange = exchange;
  submission.request = call->request;
  submission.call.signature = call->target.signature;
  submission.call.more_signatures = call->more_signatures;
  submission.call.inputs = call->bound.inputs;
  submission.call.rows = call->bound.fits_signature ? call->bound.rows : -1;
  submission.call.arrived = exchange->head().arrived;
  submission.call.deadline = std::min(deadline, call->deadline);
  // A value that is none was refused with the head.
  submission.call.criticality =
      CriticalityOf(exchange->head(), call->priority).value_or(tensor::Criticality::kCritical);
  submission.call.client =
      ClientOf(exchange->head(), context.server->options->client_identity_header);
  return submission;
}

absl::StatusOr<OipAnswer> RestBodyOf(const PreparedCall& call, const sched::CallResult& result) {
  OipAnswer answer;
  ASSIGN_OR_RETURN(answer.body, BodyOf(call, result));
  if (call.json_bytes != nullptr) answer.json_bytes = *call.json_bytes;
  if (!call.packed_as.has_value() || answer.body.size() < kPackedBytesMin) return answer;
  if (std::optional<std::string> packed = Pack(*call.packed_as, answer.body)) {
    answer.body = *std::move(packed);
    answer.encoding = FormatName(*call.packed_as);
  }
  return answer;
}

void AnswerRest(Exchange& exchange, const PreparedCall& call, bool cors,
                const sched::CallResult& result, absl::StatusOr<OipAnswer> body) {
  if (!body.ok()) return ReplyJsonError(exchange, body.status(), cors, result.retry_after);
  LogAsMessages(call, result);
  ReplyOip(exchange, *std::move(body), cors);
}

void PrintLong(const ServerContext& server, std::shared_ptr<Exchange> exchange,
               std::shared_ptr<PreparedCall> call, bool cors, sched::CallResult result) {
  struct Printing {
    std::shared_ptr<Exchange> exchange;
    std::shared_ptr<PreparedCall> call;
    sched::CallResult result;
    absl::StatusOr<OipAnswer> body = OipAnswer();
  };
  loop::EventLoop& here = exchange->loop();
  auto printing =
      std::make_shared<Printing>(Printing{std::move(exchange), std::move(call), std::move(result)});
  RunLong(
      server, here, [printing] { printing->body = RestBodyOf(*printing->call, printing->result); },
      [printing, cors] {
        AnswerRest(*printing->exchange, *printing->call, cors, printing->result,
                   std::move(printing->body));
      });
}

}  // namespace

tensor::ModelSpec AnsweredSpec(const Servable& servable, int signature) {
  return {.name = servable.model,
          .version = servable.version,
          .version_label = {},
          .signature_name = servable.signatures[static_cast<size_t>(signature)].name};
}

absl::Time RestDeadline(const LoopContext& context, absl::Time arrived) {
  const int limit = context.server->options->rest_api_timeout_in_ms;
  return arrived + (limit > 0 ? absl::Milliseconds(limit) : limits::kDeadlineDefault);
}

std::vector<tensor::NamedTensor> NameOutputs(const PreparedCall& call,
                                             const sched::CallResult& result) {
  std::vector<tensor::NamedTensor> named;
  named.reserve(call.bound.outputs.size());
  for (const int index : call.bound.outputs) {
    const auto i = static_cast<size_t>(index);
    named.push_back({call.target.definition().outputs[i].name, result.outputs[i]});
  }
  return named;
}

absl::StatusOr<PreparedCall::Messages> PredictMessages(const PreparedCall& call,
                                                       const sched::CallResult& result) {
  const tensor::ModelSpec spec = AnsweredSpec(*call.target.servable, call.target.signature);
  PreparedCall::Messages messages;
  ASSIGN_OR_RETURN(messages.request, wire::EncodePredictRequest(spec, call.request->inputs));
  ASSIGN_OR_RETURN(messages.response, wire::EncodePredictResponse(spec, NameOutputs(call, result),
                                                                  /*as_tensor_content=*/true));
  return messages;
}

void RunGrpcCall(const LoopContext& context, std::shared_ptr<Exchange> exchange,
                 const GrpcHead& head, absl::StatusOr<PreparedCall> prepared) {
  if (!prepared.ok()) {
    ReplyGrpc(*exchange, prepared.status(), {}, RetryAfterOf(prepared.status(), {}));
    return;
  }
  const absl::Time arrived = exchange->head().arrived;
  auto call = std::make_shared<PreparedCall>(*std::move(prepared));
  Submission submission = MakeSubmission(
      context, exchange, call, std::min(head.deadline, arrived + limits::kDeadlineDefault));
  submission.call.retry = head.previous_attempts > 0;
  submission.call.received_bytes = BytesIn(exchange->body(), submission.call.inputs);
  submission.done = [exchange, call](const sched::CallResult& result) {
    absl::StatusOr<std::string> body = BodyOf(*call, result);
    if (body.ok() && call->messages) {
      LogAsMessages(*call, result);
    } else if (body.ok()) {
      LogMessage(*call, exchange->body(), *body);
    }
    ReplyGrpc(*exchange, body.status(), body.ok() ? *std::move(body) : std::string(),
              result.retry_after);
  };
  Submit(std::move(submission));
}

void RunRestCall(const LoopContext& context, std::shared_ptr<Exchange> exchange,
                 absl::StatusOr<PreparedCall> prepared) {
  const bool cors = context.cors();
  if (!prepared.ok()) {
    ReplyJsonError(*exchange, prepared.status(), cors, RetryAfterOf(prepared.status(), {}));
    return;
  }
  auto call = std::make_shared<PreparedCall>(*std::move(prepared));
  Submission submission =
      MakeSubmission(context, exchange, call, RestDeadline(context, exchange->head().arrived));
  submission.done = [exchange, call, cors, server = context.server](sched::CallResult result) {
    const size_t long_bytes = call->packed_as ? kLongPackedBytes : kLongOutputBytes;
    if (IsLong(result, long_bytes)) {
      return PrintLong(*server, exchange, call, cors, std::move(result));
    }
    AnswerRest(*exchange, *call, cors, result, RestBodyOf(*call, result));
  };
  Submit(std::move(submission));
}

}  // namespace tensord::front
