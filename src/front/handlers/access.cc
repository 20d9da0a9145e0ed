// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/access.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"
#include "front/limits.h"
#include "tls/digest.h"

namespace tensord::front {
namespace {

using config::AccessRules;

bool IsAuthorization(const HeaderView& header) { return header.first == "authorization"; }

// What stands behind "Bearer " in the authorization header; nullopt when there is no such header,
// empty when it is of another form, or when there are two: a proxy may have checked the other one.
std::optional<std::string_view> TokenOf(const RequestHead& head) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::optional<std::string_view> header = head.Find("authorization");
  if (!header) return std::nullopt;
  if (std::ranges::count_if(head.headers, IsAuthorization) > 1) return std::string_view();
  if (!base::StartsWithIgnoringCase(*header, kScheme)) return std::string_view();
  const std::string_view token = header->substr(kScheme.size());
  return token.size() <= limits::kTokenBytesMax ? token : std::string_view();
}

bool Allows(const AccessRules::Rule& rule, Operation operation) {
  switch (operation) {
    case Operation::kInfer:
      return rule.infer;
    case Operation::kRead:
      return rule.read;
    case Operation::kManage:
      return rule.admin;
    case Operation::kProbe:
      return rule.probe;
  }
  return false;
}

bool CoversEveryModel(const AccessRules::Rule& rule) {
  return rule.models.empty() || std::ranges::count(rule.models, "*") > 0;
}

bool Covers(const AccessRules::Rule& rule, Operation operation, std::string_view model) {
  if (CoversEveryModel(rule)) return true;
  if (model.empty()) return operation != Operation::kManage;
  return std::ranges::any_of(
      rule.models, [model](const std::string& pattern) { return MatchesPattern(pattern, model); });
}

std::string_view OperationWords(Operation operation) {
  switch (operation) {
    case Operation::kInfer:
      return "run";
    case Operation::kRead:
      return "read about";
    case Operation::kManage:
      return "manage";
    case Operation::kProbe:
      return "probe";
  }
  return "use";
}

absl::Status Denied(Operation operation, std::string_view model) {
  return absl::PermissionDeniedError(
      base::Cat("no rule of this server allows this caller to ", OperationWords(operation),
                model.empty() ? " its models" : base::Cat(" model \"", model, "\"")));
}

absl::Status Unknown(bool bad_credentials) {
  return absl::UnauthenticatedError(
      bad_credentials
          ? "the token in the authorization header is none of this server's, or there is more "
            "than one such header"
          : "this server wants to know who calls: send a token (authorization: Bearer "
            "TOKEN)");
}

}  // namespace

// With one star remembered, as any earlier one need not take more: linear but for that one.
bool MatchesPattern(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Access::Caller Access::Identify(const RequestHead& head) const {
  Caller caller;
  const std::optional<std::string_view> token = TokenOf(head);
  const tls::Digest digest = tls::Sha256(token.value_or(std::string_view()));
  const bool has_token = token.has_value() && !token->empty();
  for (const AccessRules::Identity& identity : rules_.identities) {
    // All of them are compared, whichever it is.
    bool is_this = false;
    for (const tls::Digest& known : identity.tokens) is_this |= tls::SameDigest(known, digest);
    is_this &= has_token;
    if (is_this) caller.identities.push_back(&identity);
  }
  caller.bad_credentials = token.has_value() && caller.identities.empty();
  if (head.peer_names == nullptr) return caller;
  for (const AccessRules::Identity& identity : rules_.identities) {
    const bool is_this = std::ranges::any_of(*head.peer_names, [&](const std::string& name) {
      return std::ranges::count(identity.certificate_names, name) > 0;
    });
    if (is_this && std::ranges::count(caller.identities, &identity) == 0) {
      caller.identities.push_back(&identity);
    }
  }
  return caller;
}

bool Access::IsFor(const AccessRules::Rule& rule, const Caller& caller) const {
  return std::ranges::any_of(rule.identities, [&caller](const std::string& name) {
    return name == config::kEverybody ||
           std::ranges::any_of(caller.identities, [&name](const AccessRules::Identity* identity) {
             return identity->name == name;
           });
  });
}

Access::Verdict Access::Check(const RequestHead& head, Operation operation,
                              std::string_view model) const {
  const Caller caller = Identify(head);
  Verdict verdict;
  for (const AccessRules::Identity* identity : caller.identities) {
    if (!verdict.who.empty()) verdict.who += ',';
    verdict.who += identity->name;
  }
  if (operation == Operation::kProbe && !rules_.probes_need_rule) return verdict;
  // Somebody who shows a wrong token means to be somebody: not to be taken for nobody.
  if (caller.bad_credentials) {
    verdict.status = Unknown(true);
    return verdict;
  }
  const bool allowed = std::ranges::any_of(rules_.rules, [&](const AccessRules::Rule& rule) {
    return IsFor(rule, caller) && Allows(rule, operation) && Covers(rule, operation, model);
  });
  if (allowed) return verdict;
  verdict.status = caller.identities.empty() ? Unknown(false) : Denied(operation, model);
  return verdict;
}

Access::Verdict Access::CheckCaller(const RequestHead& head) const {
  const Caller caller = Identify(head);
  Verdict verdict;
  if (caller.bad_credentials) {
    verdict.status = Unknown(true);
  } else if (caller.identities.empty()) {
    const bool any = std::ranges::any_of(
        rules_.rules, [&](const AccessRules::Rule& rule) { return IsFor(rule, caller); });
    if (!any) verdict.status = Unknown(false);
  }
  return verdict;
}

}  // namespace tensord::front
