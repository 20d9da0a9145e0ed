// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/rest_route.h"

#include <charconv>
#include <span>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/text.h"
#include "wire/url_path.h"

namespace tensord::wire {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A name or label: not empty, no colon (and no slash, as segments were cut there).
bool IsName(std::string_view text) {
  return !text.empty() && text.find(':') == std::string_view::npos;
}

using Segments = std::span<const std::string_view>;

// What a path names, before it is decoded.
struct Match {
  std::string_view model;
  std::string_view version;
  std::string_view label;
  std::string_view subresource;
};

// [/versions/DIGITS or /labels/LABEL], then the subresource where one is allowed.
bool MatchSuffix(Segments rest, bool with_subresource, Match* match) {
  if (rest.size() >= 2 && base::EqualsIgnoringCase(rest[0], "versions") && IsDigits(rest[1])) {
    match->version = rest[1];
    rest = rest.subspan(2);
  } else if (rest.size() >= 2 && base::EqualsIgnoringCase(rest[0], "labels") && IsName(rest[1])) {
    match->label = rest[1];
    rest = rest.subspan(2);
  }
  if (with_subresource && rest.size() == 1 && base::EqualsIgnoringCase(rest[0], "metadata")) {
    match->subresource = rest[0];
    rest = {};
  }
  return rest.empty();
}

// REQUIRES: `path` is what follows "/v1/models".
bool MatchInference(std::string_view path, Match* match, std::string_view* verb) {
  const size_t colon = path.find(':');
  if (colon == std::string_view::npos || !path.starts_with('/')) return false;
  *verb = path.substr(colon + 1);
  const std::vector<std::string_view> segments = SplitPath(path.substr(0, colon));
  if (!IsName(segments[0])) return false;
  match->model = segments[0];
  return MatchSuffix(Segments(segments).subspan(1), /*with_subresource=*/false, match);
}

// The model's name may be left out; it then is missed later.
bool MatchLookup(std::string_view path, Match* match) {
  if (!path.empty() && !path.starts_with('/')) return false;
  const std::vector<std::string_view> segments = SplitPath(path);
  if (!segments.empty() && IsName(segments[0])) {
    match->model = segments[0];
    if (MatchSuffix(Segments(segments).subspan(1), /*with_subresource=*/true, match)) return true;
  }
  *match = {};
  return MatchSuffix(segments, /*with_subresource=*/true, match);
}

RestRoute Bad(std::string_view text) {
  RestRoute route;
  route.kind = RestKind::kBad;
  route.error = absl::InvalidArgumentError(base::Cat(text));
  return route;
}

RestRoute Decode(RestKind kind, const Match& match) {
  RestRoute route;
  route.kind = kind;
  route.model = PercentDecode(match.model);
  route.label = PercentDecode(match.label);
  if (!match.version.empty()) {
    int64_t version = 0;
    const char* const end = match.version.data() + match.version.size();
    if (std::from_chars(match.version.data(), end, version).ec != std::errc()) {
      return Bad(base::Cat("Failed to convert version: ", match.version, " to numeric."));
    }
    route.version = version;
  }
  return route;
}

std::optional<RestKind> VerbKind(std::string_view verb) {
  if (verb == "predict") return RestKind::kPredict;
  if (verb == "classify") return RestKind::kClassify;
  if (verb == "regress") return RestKind::kRegress;
  return std::nullopt;
}

}  // namespace

RestRoute ParseRestRoute(std::string_view method, std::string_view target) {
  constexpr std::string_view kRoot = "/v1/";
  constexpr std::string_view kModels = "/v1/models";
  if (!base::StartsWithIgnoringCase(target, kRoot)) return {};
  if (method == "OPTIONS") {
    RestRoute route;
    route.kind = RestKind::kPreflight;
    return route;
  }
  RestRoute malformed = Bad(base::Cat("Malformed request: ", method, " ", target));
  if (!base::StartsWithIgnoringCase(target, kModels)) return malformed;
  const std::string_view path = target.substr(kModels.size());
  Match match;
  if (method == "POST") {
    std::string_view verb;
    if (!MatchInference(path, &match, &verb)) return malformed;
    const std::optional<RestKind> kind = VerbKind(verb);
    return kind.has_value() ? Decode(*kind, match) : malformed;
  }
  if (method == "GET" && path.empty()) {
    RestRoute route;
    route.kind = RestKind::kList;
    return route;
  }
  if (method == "GET") {
    if (!MatchLookup(path, &match)) return malformed;
    RestRoute route =
        Decode(match.subresource == "metadata" ? RestKind::kMetadata : RestKind::kStatus, match);
    if (route.error.ok() && route.model.empty()) return Bad("Missing model name in request.");
    return route;
  }
  return malformed;
}

}  // namespace tensord::wire
