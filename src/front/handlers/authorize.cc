// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/authorize.h"

#include <string>
#include <utility>

#include "base/text.h"

namespace tensord::front {
namespace {

using Verdict = Access::Verdict;

std::string_view Name(Operation operation) {
  switch (operation) {
    case Operation::kInfer:
      return "infer";
    case Operation::kRead:
      return "read";
    case Operation::kManage:
      return "admin";
    case Operation::kProbe:
      return "probe";
  }
  return "unknown";
}

std::shared_ptr<const Access> RulesOf(const LoopContext& context) {
  return context.server->access == nullptr ? nullptr : context.server->access->Get();
}

std::string Join(const PeerNames& names) {
  std::string text;
  if (names == nullptr) return text;
  for (const std::string& name : *names) text += base::Cat(text.empty() ? "" : ",", name);
  return text;
}

// Where admin calls may come from at all; OK leaves the rest to the rules.
absl::Status CheckDoor(const LoopContext& context, const RequestHead& caller, bool has_rules) {
  // A page of another site can make a browser on this machine send a request, not without this.
  if (caller.Find("origin").has_value()) {
    return absl::PermissionDeniedError("admin calls are not for web pages");
  }
  if (caller.door != Door::kUsual) return absl::OkStatus();
  if (context.server->admin_apart) {
    return absl::PermissionDeniedError(
        "admin calls are taken on the admin listener alone (--admin_port, --admin_socket_path)");
  }
  if (caller.grpc_port || has_rules) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "which models are served is not for callers of the REST port to change, unless a rule of "
      "--access_rules_file says so; call the gRPC port, or the admin listener (--admin_port)");
}

Verdict Decide(const LoopContext& context, const RequestHead& caller, Operation operation,
               std::string_view model) {
  const std::shared_ptr<const Access> rules = RulesOf(context);
  if (operation == Operation::kManage) {
    absl::Status door = CheckDoor(context, caller, rules != nullptr);
    if (!door.ok()) return {.status = std::move(door), .who = Join(caller.peer_names)};
    // Whoever is on this machine and reaches that socket is its operator.
    if (caller.door == Door::kAdminLocal) return {.status = absl::OkStatus(), .who = "local"};
  }
  if (rules != nullptr) return rules->Check(caller, operation, model);
  Verdict verdict{.status = absl::OkStatus(), .who = Join(caller.peer_names)};
  if (operation == Operation::kManage && caller.door == Door::kAdmin &&
      caller.peer_names == nullptr) {
    verdict.status = absl::UnauthenticatedError(
        "this listener takes admin calls from clients with a certificate alone");
  }
  return verdict;
}

void Note(const LoopContext& context, const RequestHead& caller, std::string_view operation,
          std::string_view model, const Verdict& verdict) {
  context.server->audit.Write(
      *context.loop, caller,
      {.identity = verdict.who, .operation = operation, .model = model, .verdict = verdict.status});
}

}  // namespace

absl::Status Authorize(const LoopContext& context, const RequestHead& caller, Operation operation,
                       std::string_view model) {
  Verdict verdict = Decide(context, caller, operation, model);
  if (!verdict.status.ok() || operation == Operation::kManage) {
    Note(context, caller, Name(operation), model, verdict);
  }
  return std::move(verdict.status);
}

absl::Status AuthorizeCaller(const LoopContext& context, const RequestHead& caller) {
  // Admin calls there need no rule.
  if (caller.door == Door::kAdminLocal) return absl::OkStatus();
  const std::shared_ptr<const Access> rules = RulesOf(context);
  if (rules == nullptr) return absl::OkStatus();
  Verdict verdict = rules->CheckCaller(caller);
  if (!verdict.status.ok()) Note(context, caller, "any", {}, verdict);
  return std::move(verdict.status);
}

bool Permits(const LoopContext& context, const RequestHead& caller, Operation operation,
             std::string_view model) {
  return Decide(context, caller, operation, model).status.ok();
}

}  // namespace tensord::front
