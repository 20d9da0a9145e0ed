// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/version_policy.h"

#include <algorithm>
#include <limits>

namespace tensord::models {

using Kind = VersionPolicy::Kind;

std::vector<int64_t> Choose(const VersionPolicy& policy, std::span<const Candidate> candidates,
                            const std::set<int64_t>& labelled) {
  const size_t latest_max = std::max<uint32_t>(1, policy.latest);
  size_t latest = 0;
  std::vector<int64_t> wanted;
  for (const Candidate& candidate : candidates) {
    if (candidate.failed) continue;
    bool take = false;
    switch (policy.kind) {
      case Kind::kLatest:
        take = latest < latest_max || labelled.contains(candidate.number);
        ++latest;
        break;
      case Kind::kAll:
        take = true;
        break;
      case Kind::kSpecific:
        take = std::ranges::find(policy.specific, candidate.number) != policy.specific.end();
        break;
    }
    if (take) wanted.push_back(candidate.number);
  }
  return wanted;
}

bool AsksForNothing(const VersionPolicy& policy) {
  return policy.kind == Kind::kSpecific && policy.specific.empty();
}

size_t Substitutes(const VersionPolicy& policy, size_t wanted, size_t wanted_available) {
  if (AsksForNothing(policy)) return 0;
  // Nothing is known that could take over: an empty or vanished directory unloads nothing.
  if (wanted == 0) return std::numeric_limits<size_t>::max();
  if (wanted_available == 0) return wanted;
  // Specific versions are named because the others are not to serve: one of them is enough.
  return policy.kind == Kind::kSpecific ? 0 : wanted - wanted_available;
}

}  // namespace tensord::models
