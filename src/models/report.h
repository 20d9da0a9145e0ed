// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "models/snapshot.h"

// The catalog's words: log lines for what changed, each once, and the errors of whole lists.
namespace tensord::models {

// `before` is null for a model that was not there.
void LogChanges(const std::string& model, const ModelEntry* before, const ModelEntry& after,
                absl::Time now);

// Logs those that were not there before.
void LogWarnings(const std::string& model, const std::vector<std::string>& before,
                 const std::vector<std::string>& after);

// OK without errors; else UNKNOWN "2 model(s) did not become available: {...}", in the original's
// form. `what` is "model(s)" or "servable(s)"; errors by model, as Progress has them.
absl::Status DidNotBecomeAvailable(std::string_view what,
                                   const std::map<std::string, std::string>& errors);

}  // namespace tensord::models
