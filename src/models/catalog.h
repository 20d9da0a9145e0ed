// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/model_info.h"
#include "fleet/worker_key.h"
#include "loop/timers.h"
#include "models/config.h"
#include "models/snapshot.h"
#include "models/source.h"

namespace tensord::models {

using fleet::WorkerKey;
using fleet::WorkerKind;

// What the catalog asks of the rest of the server.
//
// For each Start(key) the host answers once with OnLoaded, OnLoadFailed or OnDied; after OnLoaded
// the worker may end in OnDied at any time. After Stop(key) it answers once with OnStopped, when
// the process is gone (OnDied or OnLoadFailed does as well, if that came first). After
// OnLoadFailed, OnDied or OnStopped the key is free and may be started again; nothing more may come
// for the process that had it. Threads: called on the catalog's loop. May call the catalog back,
// also inside the call.
class CatalogHost {
 public:
  virtual ~CatalogHost() = default;
  // Load this version in a new worker, and warm it.
  virtual void Start(const WorkerKey& key, const VersionFiles& files,
                     const ModelConfig& config) = 0;
  // Give the worker no more runs, let it finish what it has, end it. When this is called the last
  // published snapshot no longer offers it. Also called for a worker that still loads.
  virtual void Stop(const WorkerKey& key) = 0;
  // To be read by every loop from now on.
  virtual void Publish(std::shared_ptr<const Snapshot> snapshot) = 0;
  // Replaces the set of paths to look at; each is looked at now and by the poll period. Hand to
  // Scanner::Watch; its listings come back through OnSourceUpdate.
  virtual void Watch(std::vector<WatchedPath> paths) = 0;
};

// Knows which models and versions should live and which do, and moves the second towards the first.
// All decisions are Decide (decide.h), a pure function; this class keeps the state and acts.
//
// Threads: the loop of `timers` only (the control loop); snapshots may be read anywhere.
// Lifetime: `timers` and `host` outlive it.
class Catalog {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;

  Catalog(loop::Timers& timers, const Options& options, CatalogHost& host);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // Replaces the whole list of models. `done` runs exactly once, never inside this call:
  //   OK once every model that is new by name has an available version (at once without new ones);
  //   INVALID_ARGUMENT for a bad list, FAILED_PRECONDITION for a label on a version that is not
  //     available: nothing has changed then;
  //   UNKNOWN "N model(s) did not become available: {...}", with the failing path or error of each,
  //     as soon as that is known: the new list holds all the same, and a model that failed comes up
  //     when its files do;
  //   DEADLINE_EXCEEDED at `deadline`, or after kReloadWaitMax, naming what still loads (and goes
  //   on
  //     loading);
  //   ABORTED when a later list dropped a model that this one waits for;
  //   RESOURCE_EXHAUSTED when kReloadsWaitingMax wait already: nothing has changed then.
  // The first list may put labels on versions that are not loaded yet.
  // False where `done` will hear that nothing has changed.
  bool SetModels(std::vector<ModelConfig> models, Done done,
                 absl::Time deadline = absl::InfiniteFuture());

  // What SetModels would refuse the list for; OK when it would not.
  absl::Status Check(const std::vector<ModelConfig>& models) const;

  // Stops every worker and starts none; `done` runs once, when the last has stopped. From then on
  // SetModels is refused with UNAVAILABLE.
  void Shutdown(loop::Task done);

  // Events. Those that fit nothing (a worker that was given up long ago) are ignored.
  void OnSourceUpdate(std::string_view model, std::string_view base_path,
                      absl::StatusOr<Listing> listing);
  // `handle` becomes VersionEntry::handle; all replicas of a generation give the same one.
  void OnLoaded(const WorkerKey& key, const engine::ModelInfo& info, std::shared_ptr<void> handle);
  void OnLoadFailed(const WorkerKey& key, const absl::Status& status);
  void OnDied(const WorkerKey& key, std::string_view reason);
  void OnStopped(const WorkerKey& key);
  // A measurement of a live worker's private memory, for ledger and status.
  void OnMemory(const WorkerKey& key, uint64_t private_bytes);
  // Replaces the handle of a generation, before or after it is available.
  void SetHandle(std::string_view model, int64_t version, uint64_t generation,
                 std::shared_ptr<void> handle);

  // Never null; empty before the first SetModels.
  std::shared_ptr<const Snapshot> snapshot() const;
  // Snapshot::start of now.
  std::optional<absl::Status> StartFinished() const { return snapshot()->start; }
  // The lists that hold now, in their order; for "what is configured" pages.
  const std::vector<ModelConfig>& models() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::models
