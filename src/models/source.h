// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config.h"

// Where versions come from, as a seam: local directories now, remote stores through a fetcher
// later.
namespace tensord::models {

// One version that exists.
struct FoundVersion {
  int64_t number = 0;
  std::string directory = {};
  bool complete = false;       // May be loaded.
  std::string reason = {};     // If not complete: what is missing, for the operator.
  std::string doubt = {};      // If complete: what looks cut all the same; a load will tell.
  uint64_t bytes = 0;          // Sum of the file sizes.
  uint64_t fingerprint = 0;    // Of names, sizes and times: other files, other number; never 0.
  uint64_t warm_up_bytes = 0;  // Of assets.extra/tf_serving_warmup_requests; 0: there is none.
  bool tflite = false;         // There is a model.tflite, and it was asked for.
  std::optional<std::string> batching_parameters = {};  // As VersionFiles has it.

  bool operator==(const FoundVersion&) const = default;
};

struct Listing {
  std::vector<FoundVersion> versions;  // Highest number first; each number once.
  std::vector<std::string> warnings;   // Duplicates and the like, one sentence each.
  // Some version is not complete or not quiet yet: look again soon.
  bool unsettled = false;

  bool operator==(const Listing&) const = default;
};

// What to look for.
struct SourceQuery {
  std::string base_path;
  VersionPolicy policy;           // Versions it can never want need not be examined.
  std::set<int64_t> also;         // Examine these too (labels).
  std::set<std::string> renamed;  // Names that were seen to be renamed into place since last time.
  bool closely = false;  // Examine again what was complete: a failed version may have been mended.
  bool tflite = false;  // A model.tflite is as good as a SavedModel, and better than one beside it.

  bool operator==(const SourceQuery&) const = default;
};

// A base path to be watched for a model.
struct WatchedPath {
  std::string model;
  SourceQuery query;  // Without `renamed`.
  // Another number than before asks for a look whose result is reported even if it was reported
  // before: the model left the list and came back between two calls of Watch, and what the catalog
  // knew of it is gone.
  uint64_t look = 0;

  bool operator==(const WatchedPath&) const = default;
};

// Threads: one at a time. List may block for ever (a hanging network file system).
class VersionSource {
 public:
  virtual ~VersionSource() = default;
  // NOT_FOUND when the base path does not exist; UNAVAILABLE when it cannot be listed now;
  // UNIMPLEMENTED for a URI of an unknown kind.
  virtual absl::StatusOr<Listing> List(const SourceQuery& query) = 0;
};

}  // namespace tensord::models
