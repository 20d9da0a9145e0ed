// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "models/config.h"
#include "models/source.h"
#include "models/world.h"

namespace tensord::models {

// What is known about a model's base path.
struct SourceState {
  absl::Status status = absl::UnavailableError("its base path has not been looked at yet");
  bool looked_at = false;  // Some look came back, with a listing or an error.
  uint64_t look = 0;       // WatchedPath::look; its own for each state that was made.
  std::vector<std::string> warnings;
  // Of each incomplete version: its files as they are, and since when.
  struct Incomplete {
    uint64_t fingerprint = 0;
    absl::Time since;
  };
  std::map<int64_t, Incomplete> incomplete;

  // Takes note of the incomplete versions of a listing.
  void Note(const Listing& listing, absl::Time now);
  // When the next of these has not changed for kIncompleteWaitMax.
  absl::Time NextChange(absl::Time now) const;
};

// OK when the listing has a version that the policy asks for, complete or not; else NOT_FOUND, with
// what is there.
absl::Status SourceStatus(const ModelConfig& config, const Listing& listing);

// What the scanner should look at for a model.
SourceQuery QueryOf(const ModelConfig& config, const ObservedModel& observed);

}  // namespace tensord::models
