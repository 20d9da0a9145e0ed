// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/config.h"
#include "models/snapshot.h"

// Whether a list of models may replace the one that holds, in the original's words.
namespace tensord::models {

// INVALID_ARGUMENT: a name twice, no absolute path or URI, no or a changed platform, more
// than kModelsMax. `now`: the list that holds.
absl::Status CheckModels(const std::vector<ModelConfig>& models,
                         const std::vector<ModelConfig>& now);

// FAILED_PRECONDITION: a model that is in the list already gets a new or another label on a version
// that is not available. Labels that stay as they are may point anywhere, and so may those of
// models that are new, and all where `allow_unavailable`.
absl::Status CheckLabels(const std::vector<ModelConfig>& models,
                         const std::vector<ModelConfig>& now, const Snapshot& snapshot,
                         bool allow_unavailable);

// "/models/half" of "file:///models/half"; other paths and URIs as they are.
std::string LocalPath(const std::string& base_path);

}  // namespace tensord::models
