// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/source_state.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "models/version_policy.h"

namespace tensord::models {

void SourceState::Note(const Listing& listing, absl::Time now) {
  std::map<int64_t, Incomplete> before = std::exchange(incomplete, {});
  for (const FoundVersion& found : listing.versions) {
    if (found.complete) continue;
    const auto at = before.find(found.number);
    const bool same = at != before.end() && at->second.fingerprint == found.fingerprint;
    incomplete[found.number] = {.fingerprint = found.fingerprint,
                                .since = same ? at->second.since : now};
  }
}

absl::Time SourceState::NextChange(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [number, version] : incomplete) {
    const absl::Time given_up = version.since + limits::kIncompleteWaitMax;
    if (given_up > now) next = std::min(next, given_up);
  }
  return next;
}

absl::Status SourceStatus(const ModelConfig& config, const Listing& listing) {
  if (AsksForNothing(config.policy)) return absl::OkStatus();
  if (listing.versions.empty()) {
    return absl::NotFoundError(base::Cat("base path ", config.base_path,
                                         " holds no version: expected a directory with a number as "
                                         "its name, like ",
                                         config.base_path, "/1"));
  }
  std::vector<Candidate> candidates;
  std::string numbers;
  constexpr size_t kShown = 10;
  for (const FoundVersion& found : listing.versions) {
    candidates.push_back({.number = found.number});
    if (candidates.size() > kShown) continue;
    numbers += base::Cat(numbers.empty() ? "" : ", ", found.number);
  }
  if (!Choose(config.policy, candidates, {}).empty()) return absl::OkStatus();
  if (candidates.size() > kShown) numbers += ", ...";
  return absl::NotFoundError(base::Cat("base path ", config.base_path,
                                       " holds none of the versions that the version policy asks "
                                       "for; it holds ",
                                       numbers));
}

SourceQuery QueryOf(const ModelConfig& config, const ObservedModel& observed) {
  SourceQuery query;
  query.base_path = config.base_path;
  query.policy = config.policy;
  query.tflite = config.worker.prefer_tflite;
  for (const auto& [label, number] : config.labels) query.also.insert(number);
  query.closely = std::ranges::any_of(observed.versions, [](const VersionRecord& record) {
    return record.state == State::kEnd && record.failure != Failure::kNone;
  });
  return query;
}

}  // namespace tensord::models
