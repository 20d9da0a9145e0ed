// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/server_options.h"
#include "tls/digest.h"

// --access_rules_file (docs/access.md), as plain structs.
namespace tensord::config {

struct AccessRules {
  struct Identity {
    std::string name{};
    std::vector<tls::Digest> tokens{};
    std::vector<std::string> certificate_names{};

    bool operator==(const Identity&) const = default;
  };
  struct Rule {
    std::vector<std::string> identities{};  // "*": everybody.
    std::vector<std::string> models{};      // Patterns; empty: every model.
    bool infer = false;
    bool read = false;
    bool admin = false;
    bool probe = false;

    bool operator==(const Rule&) const = default;
  };

  std::vector<Identity> identities{};
  std::vector<Rule> rules{};
  bool probes_need_rule = false;

  bool operator==(const AccessRules&) const = default;
};

inline constexpr std::string_view kEverybody = "*";

// None without a file. INVALID_ARGUMENT or NOT_FOUND names the file and what is wrong in it.
absl::StatusOr<std::optional<AccessRules>> LoadAccessRules(const ServerOptions& options);

}  // namespace tensord::config
