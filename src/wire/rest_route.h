// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tensord::wire {

enum class RestKind : uint8_t {
  kPredict,
  kClassify,
  kRegress,
  kList,  // All models: ours, the original has none.
  kStatus,
  kMetadata,
  kPreflight,  // OPTIONS under /v1/.
  kBad,        // Under /v1/, but refused: see error.
  kOutside,    // Not under /v1/: not this API's.
};

struct RestRoute {
  RestKind kind = RestKind::kOutside;
  std::string model;               // Percent-decoded.
  std::optional<int64_t> version;  // Never together with a label.
  std::string label;               // Percent-decoded; empty when not given.
  absl::Status error;              // INVALID_ARGUMENT for kBad, OK otherwise.
};

// The original's URL grammar, odd corners included: paths match without regard to case, query and
// fragment belong to the path, verbs do not match in other cases, and anything under /v1/ that does
// not fit is a bad request rather than not found. The list of all models is ours.
RestRoute ParseRestRoute(std::string_view method, std::string_view target);

}  // namespace tensord::wire
