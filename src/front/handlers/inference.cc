// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/inference.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"
#include "front/handlers/authorize.h"
#include "front/handlers/lookup.h"
#include "front/handlers/run_call.h"
#include "wire/bind.h"
#include "wire/chars.h"
#include "wire/examples.h"
#include "wire/inference.h"
#include "wire/json/examples.h"
#include "wire/json/print.h"
#include "wire/json/request.h"

namespace tensord::front {
namespace {

using wire::InferenceMethod;

// One signature of a call, and how to read its outputs.
struct Task {
  int signature = 0;
  InferenceMethod method = InferenceMethod::kClassify;
  wire::InferenceOutputs where;
};

absl::StatusOr<Task> MakeTask(const LoopContext& context, const Servable& servable, int signature,
                              InferenceMethod method) {
  Task task{.signature = signature, .method = method, .where = {}};
  ASSIGN_OR_RETURN(task.where, wire::CheckInference(
                                   servable.signatures[static_cast<size_t>(signature)], method,
                                   context.server->options->enable_signature_method_name_check));
  return task;
}

// The outputs that a task reads must be fetchable, the others need not be.
absl::StatusOr<wire::BoundCall> BindTask(const tensor::Signature& signature, const Task& task,
                                         tensor::PredictRequest* request) {
  request->output_filter.clear();
  for (const int index : {task.where.labels, task.where.values}) {
    if (index < 0) continue;
    request->output_filter.push_back(signature.outputs[static_cast<size_t>(index)].name);
  }
  return wire::Bind(*request, signature);
}

// All tasks on the same examples, in one run.
absl::StatusOr<PreparedCall> BindTasks(std::shared_ptr<const Servable> servable,
                                       std::span<const Task> tasks, tensor::Tensor examples) {
  auto request = std::make_shared<tensor::PredictRequest>();
  request->decoded.push_back(std::move(examples));
  const auto& signatures = servable->signatures;
  const int first = tasks.front().signature;
  request->inputs.push_back({signatures[static_cast<size_t>(first)].inputs.front().name,
                             request->decoded.front().view()});
  PreparedCall call{.target = {.servable = std::move(servable), .signature = first},
                    .request = request,
                    .bound = {},
                    .encode = {}};
  for (const Task& task : tasks) {
    ASSIGN_OR_RETURN(
        wire::BoundCall bound,
        BindTask(signatures[static_cast<size_t>(task.signature)], task, request.get()));
    if (&task == tasks.data()) {
      call.bound = std::move(bound);
    } else {
      call.more_signatures.push_back(task.signature);
    }
  }
  return call;
}

absl::StatusOr<wire::InferenceResult> ResultOf(const PreparedCall& call, const Task& task,
                                               std::span<const tensor::TensorView> outputs) {
  return wire::ReadInference(task.method, task.where, outputs,
                             call.request->decoded.front().shape.dim(0));
}

// ---- Classify and Regress --------------------------------------------------------------------

wire::LoggedCall LoggedAs(InferenceMethod method) {
  return method == InferenceMethod::kClassify ? wire::LoggedCall::kClassify
                                              : wire::LoggedCall::kRegress;
}

absl::StatusOr<std::string> EncodeAnswer(const Task& task, const PreparedCall& call,
                                         const sched::CallResult& result) {
  ASSIGN_OR_RETURN(const wire::InferenceResult rows, ResultOf(call, task, result.outputs));
  return wire::EncodeInferenceResponse(AnsweredSpec(*call.target.servable, task.signature), rows);
}

absl::StatusOr<PreparedCall> PrepareGrpc(const LoopContext& context, Exchange& exchange,
                                         std::span<const std::byte> message,
                                         InferenceMethod method) {
  ASSIGN_OR_RETURN(const wire::InferenceRequest request, wire::WalkInference(wire::Chars(message)));
  const tensor::ModelSpec& spec = request.tasks.front().spec;
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kInfer, spec.name));
  ASSIGN_OR_RETURN(Target target,
                   FindTarget(context, spec, SignatureWords::kInference, exchange.trace()));
  ASSIGN_OR_RETURN(const Task task, MakeTask(context, *target.servable, target.signature, method));
  ASSIGN_OR_RETURN(tensor::Tensor examples, wire::ReadExamples(request.input));
  ASSIGN_OR_RETURN(PreparedCall prepared,
                   BindTasks(std::move(target.servable), {&task, 1}, std::move(examples)));
  prepared.encode = [task](const PreparedCall& call, const sched::CallResult& result) {
    return EncodeAnswer(task, call, result);
  };
  prepared.logged_as = LoggedAs(method);
  return prepared;
}

void InferGrpc(const LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
               std::span<const std::byte> message, InferenceMethod method) {
  absl::StatusOr<PreparedCall> prepared = PrepareGrpc(context, *exchange, message, method);
  RunGrpcCall(context, std::move(exchange), head, std::move(prepared));
}

// The examples are read before the model is looked up, as in the original.
absl::StatusOr<PreparedCall> PrepareRest(const LoopContext& context, Exchange& exchange,
                                         const wire::RestRoute& route, InferenceMethod method) {
  ASSIGN_OR_RETURN(const wire::JsonRequest json,
                   wire::ScanJsonRequest(wire::Chars(exchange.body())));
  RETURN_IF_ERROR(wire::CheckSyntax(json));
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kInfer, route.model));
  ASSIGN_OR_RETURN(tensor::Tensor examples, wire::JsonExamples(json));
  ASSIGN_OR_RETURN(Target target, FindTarget(context, SpecOf(route, json.signature_name),
                                             SignatureWords::kInference, exchange.trace()));
  ASSIGN_OR_RETURN(const Task task, MakeTask(context, *target.servable, target.signature, method));
  ASSIGN_OR_RETURN(PreparedCall prepared,
                   BindTasks(std::move(target.servable), {&task, 1}, std::move(examples)));
  prepared.encode = [task](const PreparedCall& call,
                           const sched::CallResult& result) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const wire::InferenceResult rows, ResultOf(call, task, result.outputs));
    return wire::PrintInference(rows);
  };
  prepared.logged_as = LoggedAs(method);
  prepared.messages =
      [task](const PreparedCall& call,
             const sched::CallResult& result) -> absl::StatusOr<PreparedCall::Messages> {
    PreparedCall::Messages messages{
        .request = wire::EncodeInferenceRequest(AnsweredSpec(*call.target.servable, task.signature),
                                                *call.request),
        .response = {}};
    ASSIGN_OR_RETURN(messages.response, EncodeAnswer(task, call, result));
    return messages;
  };
  return prepared;
}

// ---- MultiInference --------------------------------------------------------------------------

absl::Status CheckModel(const tensor::ModelSpec& spec, const tensor::ModelSpec& first) {
  if (spec.name.empty()) {
    return absl::InvalidArgumentError("Found ModelSpec with an empty model name.");
  }
  if (spec.name == first.name) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat("All ModelSpecs in a MultiInferenceRequest must access the same model name; \"",
                spec.name, "\" is not \"", first.name, "\"."));
}

// The first task's version or label picks what runs; those of the others count for nothing.
absl::StatusOr<std::vector<Task>> MakeTasks(const LoopContext& context, const Servable& servable,
                                            std::span<const wire::InferenceTask> asked) {
  std::vector<Task> tasks;
  const tensor::Endpoint* input = nullptr;
  for (const wire::InferenceTask& one : asked) {
    RETURN_IF_ERROR(CheckModel(one.spec, asked.front().spec));
    ASSIGN_OR_RETURN(const int signature,
                     wire::FindTaskSignature(servable.signatures, one.spec.signature_name));
    const tensor::Signature& definition = servable.signatures[static_cast<size_t>(signature)];
    if (std::ranges::any_of(tasks, [&](const Task& task) { return task.signature == signature; })) {
      return absl::InvalidArgumentError(
          base::Cat("Duplicate evaluation of signature: ", definition.name));
    }
    ASSIGN_OR_RETURN(const InferenceMethod method, wire::MethodOf(one.method));
    ASSIGN_OR_RETURN(Task task, MakeTask(context, servable, signature, method));
    if (input == nullptr) input = &definition.inputs.front();
    if (input->tensor_name != definition.inputs.front().tensor_name) {
      return absl::InvalidArgumentError(base::Cat(
          "Input tensor must be the same for all Signatures. \"", definition.name, "\" takes ",
          definition.inputs.front().tensor_name, ", not ", input->tensor_name, "."));
    }
    tasks.push_back(task);
  }
  return tasks;
}

absl::StatusOr<std::string> EncodeTasks(std::span<const Task> tasks, const PreparedCall& call,
                                        const sched::CallResult& result) {
  const Servable& servable = *call.target.servable;
  std::span<const tensor::TensorView> outputs = result.outputs;
  std::string body;
  for (const Task& task : tasks) {
    const size_t own = servable.signatures[static_cast<size_t>(task.signature)].outputs.size();
    ASSIGN_OR_RETURN(const wire::InferenceResult rows, ResultOf(call, task, outputs.first(own)));
    wire::AppendMultiInferenceResult(AnsweredSpec(servable, task.signature), rows, &body);
    outputs = outputs.subspan(own);
  }
  return body;
}

absl::StatusOr<PreparedCall> PrepareTasks(const LoopContext& context, Exchange& exchange,
                                          std::span<const std::byte> message) {
  ASSIGN_OR_RETURN(const wire::InferenceRequest request,
                   wire::WalkMultiInference(wire::Chars(message)));
  const tensor::ModelSpec& spec = request.tasks.front().spec;
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kInfer, spec.name));
  ASSIGN_OR_RETURN(std::shared_ptr<const Servable> servable,
                   FindServable(context, spec, exchange.trace()));
  ASSIGN_OR_RETURN(std::vector<Task> tasks, MakeTasks(context, *servable, request.tasks));
  exchange.trace().signature = tasks.front().signature;
  ASSIGN_OR_RETURN(tensor::Tensor examples, wire::ReadExamples(request.input));
  ASSIGN_OR_RETURN(PreparedCall prepared,
                   BindTasks(std::move(servable), tasks, std::move(examples)));
  prepared.encode = [tasks = std::move(tasks)](const PreparedCall& call,
                                               const sched::CallResult& result) {
    return EncodeTasks(tasks, call, result);
  };
  prepared.logged_as = wire::LoggedCall::kMultiInference;
  return prepared;
}

}  // namespace

void ClassifyGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                  std::span<const std::byte> message) {
  InferGrpc(context, std::move(exchange), head, message, InferenceMethod::kClassify);
}

void RegressGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                 std::span<const std::byte> message) {
  InferGrpc(context, std::move(exchange), head, message, InferenceMethod::kRegress);
}

void MultiInferenceGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange,
                        const GrpcHead& head, std::span<const std::byte> message) {
  absl::StatusOr<PreparedCall> prepared = PrepareTasks(context, *exchange, message);
  RunGrpcCall(context, std::move(exchange), head, std::move(prepared));
}

void InferenceRest(LoopContext& context, std::shared_ptr<Exchange> exchange,
                   const wire::RestRoute& route) {
  const InferenceMethod method = route.kind == wire::RestKind::kClassify
                                     ? InferenceMethod::kClassify
                                     : InferenceMethod::kRegress;
  absl::StatusOr<PreparedCall> prepared = PrepareRest(context, *exchange, route, method);
  RunRestCall(context, std::move(exchange), std::move(prepared));
}

}  // namespace tensord::front
