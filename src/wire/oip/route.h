// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tensord::wire {

enum class OipKind : uint8_t {
  kServer,  // GET /v2
  kLive,    // GET /v2/health/live
  kReady,   // GET /v2/health/ready
  kModel,   // GET /v2/models/NAME[/versions/V]
  kModelReady,
  kInfer,       // POST .../infer
  kConfig,      // GET /v2/models/NAME[/versions/V]/config
  kStatistics,  // GET /v2/models[/NAME[/versions/V]]/stats; without a name: of all models.
  kIndex,       // POST /v2/repository/index
  kLoad,        // POST /v2/repository/models/NAME/load
  kUnload,      // POST /v2/repository/models/NAME/unload
  kPreflight,   // OPTIONS under /v2
  kBad,         // Under /v2, but refused: see error and http_status.
  kOutside,     // Not under /v2.
};

struct OipRoute {
  OipKind kind = OipKind::kOutside;
  std::string model = {};                 // Percent-decoded once.
  std::optional<int64_t> version = {};    // Digits.
  absl::Status error = absl::OkStatus();  // Of kBad.
  int http_status = 200;                  // Likewise: 400, 404 or 405.
};

// Paths match exactly: no other case, no empty segment, no slash at the end (but /v2/). A query is
// dropped.
OipRoute ParseOipRoute(std::string_view method, std::string_view target);

}  // namespace tensord::wire
