// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/platforms.h"
#include "engine/model_info.h"
#include "fleet/worker.h"
#include "front/handlers/servable.h"
#include "obs/request_metrics.h"
#include "sched/version_queue.h"
#include "serve/run_times.h"

namespace tensord::serve {

// One set of files of one version. Other files under the same number are another generation.
struct VersionId {
  std::string model;
  int64_t version = 0;
  uint64_t generation = 0;

  auto operator<=>(const VersionId&) const = default;  // NOLINT(modernize-use-nullptr): a bug.
};

// What a version needs before its first worker is there.
struct VersionSetup {
  // Set where the version's directory may have parameters for batching.
  const config::PlatformSettings* platform = nullptr;
  sched::QueueOptions queue;                     // Without signatures, stateful and on_run.
  std::shared_ptr<const RunTimeBook> run_times;  // Of an earlier life; never null.
  obs::RequestMetrics* metrics = nullptr;
  std::shared_ptr<front::RequestLog> request_log;
};

// A line of the metrics page.
struct VersionStats {
  VersionId id;
  sched::Stats stats;
  uint64_t copied_bytes = 0;  // On the way in and by all its workers, also those that are gone.
  RunTimeBook run_times = {};
};

// The versions at home on one loop: their queues, and the workers that feed on them.
// Threads: that loop. Owns: the queues. Lifetime: the loop outlives it.
class VersionHome {
 public:
  explicit VersionHome(loop::EventLoop& loop) : loop_(loop) {}

  // A loaded worker joins its version; the first one makes the queue from what it says of its
  // model. INVALID_ARGUMENT when its description is malformed; FAILED_PRECONDITION when it is not
  // that of the version's other workers: the files changed under a version that serves.
  absl::StatusOr<std::shared_ptr<front::Servable>> AddWorker(const VersionId& id,
                                                             fleet::Worker* worker,
                                                             const engine::ModelInfo& info,
                                                             VersionSetup setup);
  // No more runs for this worker. Does nothing for one that never joined.
  void RemoveWorker(const VersionId& id, fleet::Worker* worker);
  void OnWorkerFree(const VersionId& id);

  // Answers what is queued and in flight, then forgets the version and runs `done`. REQUIRES: no
  // loop's snapshot names it any longer.
  void Drain(const VersionId& id, loop::Task done);
  // Answers all of it with `status` now, and forgets the version.
  void Drop(const VersionId& id, const absl::Status& status);

  std::vector<VersionStats> Collect() const;

 private:
  struct Version {
    std::shared_ptr<front::Servable> servable;
    std::unique_ptr<sched::VersionQueue> queue;
    std::vector<fleet::Worker*> workers;
    uint64_t copied_before = 0;  // By workers that are gone.
  };

  absl::StatusOr<Version*> MakeVersion(const VersionId& id, const engine::ModelInfo& info,
                                       VersionSetup setup);

  loop::EventLoop& loop_;
  std::map<VersionId, Version> versions_;
};

}  // namespace tensord::serve
