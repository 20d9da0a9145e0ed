// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "models/source.h"
#include "models/version_files.h"

namespace tensord::models {

// Version directories of a mounted file system.
//
// A version is complete when its files hold together (version_files.h) and nothing more comes: it
// was renamed into place, or looked the same for `quiet`, or its last byte is older than that when
// it is first seen. Threads: one at a time. Owns: what it saw last time, for each base path.
class LocalSource final : public VersionSource {
 public:
  struct Options {
    absl::Duration quiet = absl::Seconds(1);
    const base::Clock* clock = &base::MonotonicClock();
    std::function<absl::Time()> wall_time = base::WallTime;  // To compare with files' times.
  };

  explicit LocalSource(Options options) : options_(std::move(options)) {}
  absl::StatusOr<Listing> List(const SourceQuery& query) override;

 private:
  // A version directory as it was last looked at.
  struct Known {
    FilesSeen files;
    absl::Time since;  // Of this fingerprint; monotonic.
    bool complete = false;
    bool renamed = false;  // It came as a whole.
  };
  struct PathState {
    SourceQuery query;
    struct stat directory {};
    int looks = 0;  // Since the last one at everything.
    Listing listing;
    std::map<std::string, Known> versions;  // By name.
  };

  bool Unchanged(const PathState& state, const SourceQuery& query, const struct stat& now) const;
  FoundVersion Examine(int directory, const std::string& base_path, const std::string& name,
                       int64_t number, const SourceQuery& query,
                       std::map<std::string, Known>* before, PathState* state);
  bool Settled(const Known& known, bool first_look) const;

  const Options options_;
  std::map<std::string, PathState> paths_;
};

// The number that a directory's name stands for: decimal digits, leading zeros allowed, at most
// 2^63 - 1. False for anything else.
bool VersionNumber(std::string_view name, int64_t* number);

}  // namespace tensord::models
