// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "models/states.h"

// What the server has at one moment, for everybody else: requests look versions up here, status and
// metrics pages print it.
namespace tensord::models {

struct VersionEntry {
  int64_t number = 0;
  uint64_t generation = 0;  // See VersionFiles.
  State state = State::kStart;
  // Why it is not available: the last error of loading, of a death, of incomplete files. An
  // available version has OK here.
  absl::Status status;
  absl::Time since;         // Of this state; monotonic.
  bool will_retry = false;  // kEnd by a failure that may pass: tried again if nothing else serves.
  bool restarting = false;  // kLoading, and was available before: its worker died.
  std::string directory;
  std::string stateful_reason;  // Empty: not stateful.
  std::vector<std::string>
      warnings;                      // Of the worker (warm-up) and of the catalog (files are gone).
  std::vector<std::string> sandbox;  // What was applied and what was not, as the worker found it.
  std::string sandbox_grade;         // "A" to "D"; empty before it is known.
  uint32_t sandbox_stage = 0;        // 0 none, 1, 2: see engine::ModelInfo.
  std::string runtime_version;
  std::vector<std::string> devices;
  uint64_t memory_estimate_bytes = 0;  // Of all its workers, before loading.
  uint64_t memory_bytes = 0;           // Of all its workers, as they reported it.
  int replicas_live = 0;
  int replicas_wanted = 0;
  int restarts = 0;  // Workers of this version that died and were started again.
  absl::Duration load_time;
  absl::Duration warm_up_time;
  uint32_t warm_up_runs = 0;
  std::vector<std::string> alone;  // Signatures whose calls share no runs unasked, and why.
  bool two_sessions = false;       // Runs that have company stay in one thread each.
  std::string warm_up_source;      // "records", "zeros", or empty: nothing ran.
  // What the host gave with OnLoaded or SetHandle: its queue and workers for this generation. Stays
  // through deaths and restarts; gone from the snapshot when the generation is over, which is when
  // the host should answer what still waits in it. Shared because requests hold it meanwhile.
  std::shared_ptr<void> handle;
};

struct ModelEntry {
  std::string base_path;
  bool configured = true;  // False: it left the list; what is here unloads or is over.
  // Highest number first, one entry a number, also ended ones (the last kEndedVersionsMax).
  std::vector<VersionEntry> versions;
  // Number and generation of what unloads behind another generation of the same version, and so is
  // not among `versions`: its workers still finish requests.
  std::vector<std::pair<int64_t, uint64_t>> unloading;
  // Versions that the version policy names, there or not; empty for other policies.
  std::vector<int64_t> named;
  // Where labels point now. A label whose version is not up yet points there all the same.
  std::map<std::string, int64_t, std::less<>> labels;
  // Not OK: the base path was not looked at yet, does not exist, cannot be listed, hangs, or holds
  // no version.
  absl::Status source;
  bool looked_at = false;

  // Highest available one, nullptr when there is none.
  const VersionEntry* Latest() const;
  const VersionEntry* Version(int64_t number) const;
};

// What a client asks for. At most one of version and label.
struct VersionSpec {
  std::string_view model;
  std::optional<int64_t> version;
  std::optional<std::string_view> label;
  // Also finds a version that is `restarting`, for requests that may wait in its queue.
  bool or_restarting = false;
};

// Immutable: published whole, read by every loop without a lock.
// Lifetime: entries live as long as the snapshot; hold its shared_ptr while using one.
class Snapshot {
 public:
  // Entries are shared between snapshots: one that did not change is not copied.
  using Models = std::map<std::string, std::shared_ptr<const ModelEntry>, std::less<>>;

  // Also has models that left the configuration while they unload.
  Models models;
  // Latched: true once every configured model has had an available version at the same time.
  bool ready = false;
  // The start of the original: unset until every configured model has an available version or has
  // failed for good; then OK, or UNKNOWN "N servable(s) did not become available: {...}". Stays as
  // it was first set.
  std::optional<absl::Status> start;

  // The version that serves this request.
  //   NOT_FOUND "Servable not found for request: Latest(m)" or "...Specific(m, 7)", followed by the
  //     reason if it failed;
  //   INVALID_ARGUMENT "Unrecognized servable version label: x";
  //   UNAVAILABLE when it is configured but not loaded yet, when nobody can tell what is there (the
  //     base path was not looked at, or cannot be), or when its worker is being restarted; carries
  //     RetryAfter.
  // Costs two map look-ups when found.
  absl::StatusOr<const VersionEntry*> Find(const VersionSpec& spec, absl::Time now) const;

  // For GetModelStatus, highest number first.
  //   NOT_FOUND "Could not find any versions of model m", "Could not find version 7 of model m".
  absl::StatusOr<std::vector<const VersionEntry*>> Status(std::string_view model,
                                                          std::optional<int64_t> version) const;

  // Whether the model has an available version now (not latched). NOT_FOUND for an unknown one.
  absl::StatusOr<bool> ModelReady(std::string_view model) const;
};

// How long a client should wait before it tries again, if the status says so.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace tensord::models
