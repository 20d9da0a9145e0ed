// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "models/config.h"

namespace tensord::models {

// A version that could serve: its files are complete, or it serves already.
struct Candidate {
  int64_t number = 0;
  bool failed = false;  // Could not be loaded or kept dying, and nothing has changed since.
};

// The versions that should live, highest first.
//   latest(n): the n highest that did not fail, so a bad new version leaves the old one wanted; and
//     those that a label points to, so that a label does not break when a version is added;
//   all: all that did not fail;
//   specific: those listed and no others, that did not fail.
// REQUIRES: candidates are highest first, each number once.
std::vector<int64_t> Choose(const VersionPolicy& policy, std::span<const Candidate> candidates,
                            const std::set<int64_t>& labelled);

// Whether the policy asks for nothing at all, whatever exists.
bool AsksForNothing(const VersionPolicy& policy);

// How many versions that are not wanted any more to keep, because what is wanted does not serve
// yet.
//   wanted: how many are; wanted_available: how many of these serve.
size_t Substitutes(const VersionPolicy& policy, size_t wanted, size_t wanted_available);

}  // namespace tensord::models
