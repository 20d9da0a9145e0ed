// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/route.h"

#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"
#include "wire/oip/request.h"
#include "wire/url_path.h"

namespace tensord::wire {
namespace {

using Segments = std::span<const std::string_view>;

OipRoute Refuse(int http_status, absl::Status error) {
  return {.kind = OipKind::kBad, .error = std::move(error), .http_status = http_status};
}

OipRoute NotFound(std::string_view path) {
  return Refuse(
      404, absl::NotFoundError(base::Cat("nothing is served at ", path,
                                         "; models are under /v2/models/NAME, see docs/oip.md")));
}

// models/NAME[/versions/V][/ready|/infer|/config|/stats] and models/stats, without "models".
OipRoute ModelRoute(Segments segments, std::string_view path) {
  if (segments.empty() || segments[0].empty()) return NotFound(path);
  if (segments.size() == 1 && segments[0] == "stats") return {.kind = OipKind::kStatistics};
  OipRoute route{.kind = OipKind::kModel, .model = PercentDecode(segments[0])};
  segments = segments.subspan(1);
  if (segments.size() >= 2 && segments[0] == "versions") {
    if (segments[1].empty()) return NotFound(path);
    const auto version = ParseOipVersion(segments[1]);
    if (!version.ok()) return Refuse(400, version.status());
    route.version = *version;
    segments = segments.subspan(2);
  }
  if (segments.empty()) return route;
  if (segments.size() > 1) return NotFound(path);
  if (segments[0] == "ready") {
    route.kind = OipKind::kModelReady;
  } else if (segments[0] == "infer") {
    route.kind = OipKind::kInfer;
  } else if (segments[0] == "config") {
    route.kind = OipKind::kConfig;
  } else if (segments[0] == "stats") {
    route.kind = OipKind::kStatistics;
  } else {
    return NotFound(path);
  }
  return route;
}

// repository/index and repository/models/NAME/(load|unload), without "repository".
OipRoute RepositoryRoute(Segments segments, std::string_view path) {
  if (segments.size() == 1 && segments[0] == "index") return {.kind = OipKind::kIndex};
  if (segments.size() != 3 || segments[0] != "models" || segments[1].empty()) {
    return NotFound(path);
  }
  if (segments[2] != "load" && segments[2] != "unload") return NotFound(path);
  return {.kind = segments[2] == "load" ? OipKind::kLoad : OipKind::kUnload,
          .model = PercentDecode(segments[1])};
}

OipRoute PathRoute(Segments segments, std::string_view path) {
  if (segments.empty() || (segments.size() == 1 && segments[0].empty())) {
    return {.kind = OipKind::kServer};
  }
  if (segments[0] == "health" && segments.size() == 2) {
    if (segments[1] == "live") return {.kind = OipKind::kLive};
    if (segments[1] == "ready") return {.kind = OipKind::kReady};
  }
  if (segments[0] == "models") return ModelRoute(segments.subspan(1), path);
  if (segments[0] == "repository") return RepositoryRoute(segments.subspan(1), path);
  if (segments[0] == "systemsharedmemory" || segments[0] == "cudasharedmemory") {
    return Refuse(404, absl::NotFoundError(
                           base::Cat("nothing is served at ", path,
                                     "; tensors come and go in requests and answers, not in shared "
                                     "memory")));
  }
  return NotFound(path);
}

std::string_view MethodOf(OipKind kind) {
  switch (kind) {
    case OipKind::kInfer:
    case OipKind::kIndex:
    case OipKind::kLoad:
    case OipKind::kUnload:
      return "POST";
    default:
      return "GET";
  }
}

}  // namespace

OipRoute ParseOipRoute(std::string_view method, std::string_view target) {
  constexpr std::string_view kRoot = "/v2";
  const std::string_view path = target.substr(0, target.find('?'));
  if (!path.starts_with(kRoot)) return {};
  const std::string_view rest = path.substr(kRoot.size());
  if (!rest.empty() && rest.front() != '/') return {};
  if (method == "OPTIONS") return {.kind = OipKind::kPreflight};
  OipRoute route = PathRoute(SplitPath(rest), path);
  if (route.kind == OipKind::kBad || method == MethodOf(route.kind)) return route;
  return Refuse(405, absl::InvalidArgumentError(
                         base::Cat(path, " takes ", MethodOf(route.kind), ", not ", method)));
}

}  // namespace tensord::wire
