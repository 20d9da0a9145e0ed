// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/access_rules.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "config/text_files.h"
#include "config/text_proto.h"
#include "tensord/access_rules.pb.h"

namespace tensord::config {
namespace {

absl::Status Invalid(std::string_view words) {
  return absl::InvalidArgumentError(base::Cat(words));
}

absl::StatusOr<tls::Digest> ToDigest(const std::string& hex) {
  tls::Digest digest;
  const bool well_formed =
      hex.size() == 2 * digest.size() &&
      std::all_of(hex.begin(), hex.end(), [](char c) { return base::HexDigit(c) >= 0; });
  if (!well_formed) {
    return Invalid(
        base::Cat("token_sha256 takes the 64 hex digits that `printf %s TOKEN | "
                  "sha256sum` prints, not ",
                  hex.size(), " other characters"));
  }
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] =
        static_cast<uint8_t>(base::HexDigit(hex[2 * i]) * 16 + base::HexDigit(hex[2 * i + 1]));
  }
  return digest;
}

absl::StatusOr<AccessRules::Identity> ToIdentity(const tensord::AccessRules::Identity& file) {
  if (file.name().empty()) return Invalid("an identity has no name");
  if (file.name() == kEverybody)
    return Invalid("no identity can be called \"*\": that is everybody");
  AccessRules::Identity identity{.name = file.name()};
  const std::string about = base::Cat("identity ", file.name(), ": ");
  for (const std::string& hex : file.token_sha256()) {
    absl::StatusOr<tls::Digest> digest = ToDigest(hex);
    if (!digest.ok()) return base::WithContext(digest.status(), about);
    identity.tokens.push_back(*digest);
  }
  for (const std::string& name : file.certificate_name()) {
    if (name.empty()) return Invalid(about + "certificate_name is empty");
    identity.certificate_names.push_back(name);
  }
  if (identity.tokens.empty() && identity.certificate_names.empty()) {
    return Invalid(about + "needs a token_sha256 or a certificate_name");
  }
  return identity;
}

absl::StatusOr<AccessRules::Rule> ToRule(const tensord::AccessRules::Rule& file,
                                         const std::set<std::string>& known) {
  AccessRules::Rule rule;
  for (const std::string& identity : file.identity()) {
    if (identity != kEverybody && !known.contains(identity)) {
      return Invalid(base::Cat("a rule names the identity \"", identity, "\", which there is not"));
    }
    rule.identities.push_back(identity);
  }
  if (rule.identities.empty()) {
    return Invalid("a rule names no identity (\"*\" stands for everybody)");
  }
  for (const std::string& model : file.model()) {
    if (model.empty()) return Invalid("a rule has an empty model pattern (\"*\": every model)");
    rule.models.push_back(model);
  }
  if (file.allow().empty()) return Invalid("a rule allows nothing (allow: INFER, READ, ADMIN)");
  for (const int kind : file.allow()) {
    rule.infer |= kind == tensord::AccessRules::INFER;
    rule.read |= kind == tensord::AccessRules::READ;
    rule.admin |= kind == tensord::AccessRules::ADMIN;
    rule.probe |= kind == tensord::AccessRules::PROBE;
    if (kind == tensord::AccessRules::UNSET) return Invalid("a rule allows UNSET");
  }
  return rule;
}

// A token or a certificate stands for one identity.
absl::Status CheckUnique(const AccessRules& rules) {
  std::set<tls::Digest> tokens;
  std::set<std::string> certificates;
  for (const AccessRules::Identity& identity : rules.identities) {
    for (const tls::Digest& token : identity.tokens) {
      if (tokens.insert(token).second) continue;
      return Invalid(base::Cat("identity ", identity.name, " has a token that is there already"));
    }
    for (const std::string& name : identity.certificate_names) {
      if (certificates.insert(name).second) continue;
      return Invalid(base::Cat("the certificate_name ", name, " is there twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AccessRules> ToRules(const tensord::AccessRules& file) {
  AccessRules rules{.probes_need_rule = file.probes_need_rule()};
  std::set<std::string> known;
  for (const auto& from : file.identity()) {
    ASSIGN_OR_RETURN(AccessRules::Identity identity, ToIdentity(from));
    if (!known.insert(identity.name).second) {
      return Invalid(base::Cat("the identity ", identity.name, " is there twice"));
    }
    rules.identities.push_back(std::move(identity));
  }
  for (const auto& from : file.rule()) {
    ASSIGN_OR_RETURN(AccessRules::Rule rule, ToRule(from, known));
    rules.rules.push_back(std::move(rule));
  }
  RETURN_IF_ERROR(CheckUnique(rules));
  return rules;
}

}  // namespace

absl::StatusOr<std::optional<AccessRules>> LoadAccessRules(const ServerOptions& options) {
  FileTexts texts;
  return LoadAccessRules(options, &texts);
}

absl::StatusOr<std::optional<AccessRules>> LoadAccessRules(const ServerOptions& options,
                                                           FileTexts* texts) {
  const std::string& path = options.access_rules_file;
  if (path.empty()) return std::nullopt;
  tensord::AccessRules file;
  RETURN_IF_ERROR(ReadTextProto("access_rules_file", path, texts, &file));
  absl::StatusOr<AccessRules> rules = ToRules(file);
  if (!rules.ok()) return base::WithContext(rules.status(), base::Cat(path, ": "));
  return *std::move(rules);
}

}  // namespace tensord::config
