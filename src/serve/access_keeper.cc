// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/access_keeper.h"

#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "config/check.h"
#include "config/text_files.h"
#include "loop/loop_set.h"
#include "obs/log.h"

namespace tensord::serve {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(10);  // As long as a token is taken back late.

}  // namespace

absl::Status AccessKeeper::Open(config::FileTexts* texts) {
  ASSIGN_OR_RETURN(std::optional<config::AccessRules> rules,
                   config::LoadAccessRules(options_, texts));
  if (!rules) {
    const bool admin_apart = config::HasAdminListener(options_);
    obs::Warn(
        "access: open, as the original: whoever reaches a port may run and read every model{}",
        admin_apart ? "; admin calls are served on the admin listener alone"
                    : ", and whoever reaches the gRPC port may change which are served "
                      "(--access_rules_file, --admin_port)");
    return absl::OkStatus();
  }
  Use(*std::move(rules));
  LookLater();
  return absl::OkStatus();
}

void AccessKeeper::Use(config::AccessRules rules) {
  rules_ = rules;
  obs::Info("access: by the rules of {} ({} identities, {} rules; probes {})",
            options_.access_rules_file, rules.identities.size(), rules.rules.size(),
            rules.probes_need_rule ? "need a rule, too" : "are open");
  slot_.Set(std::make_shared<const front::Access>(std::move(rules)));
}

void AccessKeeper::LookLater() {
  control_.At(control_.Now() + kLookEvery, [this] {
    Look();
    LookLater();
  });
}

void AccessKeeper::Look() {
  if (options_.access_rules_file.empty()) return;
  if (!look_.Begin()) return;
  const bool posted = files_.Run([this] {
    config::FileTexts texts;
    absl::StatusOr<std::optional<config::AccessRules>> rules =
        config::LoadAccessRules(options_, &texts);
    loop::PostOrDie(control_, [this, rules = std::move(rules), texts = std::move(texts)]() mutable {
      look_.End();
      Take(std::move(rules), texts);
    });
  });
  if (!posted) look_.End();  // The thread has much to do; the next look will do.
}

void AccessKeeper::Take(absl::StatusOr<std::optional<config::AccessRules>> rules,
                        const config::FileTexts& texts) {
  const std::string problem = rules.ok() ? "" : std::string(base::Message(rules.status()));
  if (rules.ok() && **rules != rules_) {
    Use(**std::move(rules));
    used_(texts);
  }
  if (problem != problem_ && !problem.empty()) {
    obs::Error("access: the rules in use stay: {}", problem);
  }
  problem_ = problem;
}

}  // namespace tensord::serve
