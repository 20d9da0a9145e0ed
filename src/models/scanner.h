// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "loop/event_loop.h"
#include "models/source.h"

namespace tensord::models {

// Looks at base paths, by period and when the kernel tells of a change, on threads of its own: one
// for each file system, so that one that hangs delays none of the others. A look that has not come
// back after kScanStuckAfter is reported as UNAVAILABLE, once; the thread is left waiting.
//
// Threads: all calls on the loop's thread; `report` runs there too.
// Lifetime: the loop outlives it. The destructor does not wait for a thread that hangs; such a
// thread only touches what it shares.
class Scanner {
 public:
  using MakeSource = std::function<std::unique_ptr<VersionSource>()>;  // One for each thread.
  // Runs only when something differs from what was last reported for that path, and after each
  // change of what is watched.
  using Report = absl::AnyInvocable<void(const std::string& model, const std::string& base_path,
                                         absl::StatusOr<Listing> listing)>;

  // `poll_period`: as in Options.
  Scanner(loop::EventLoop& loop, absl::Duration poll_period, MakeSource make_source, Report report);
  ~Scanner();
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;

  // Replaces what is watched; everything that is new or differs is looked at now, and with
  // poll_period <= 0 all the rest as well.
  void Watch(std::vector<WatchedPath> paths);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Version directories of the local file system (local_source.cc).
std::unique_ptr<VersionSource> MakeLocalSource(absl::Duration poll_period);

}  // namespace tensord::models
