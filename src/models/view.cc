// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/view.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "models/version_policy.h"

namespace tensord::models {
namespace {

// Of two generations of a version, the one to show: what serves, then what comes, then what was.
std::pair<int, uint64_t> Rank(const VersionRecord& record) {
  int rank = 0;
  switch (record.state) {
    case State::kAvailable:
      rank = 4;
      break;
    case State::kLoading:
      rank = record.was_available ? 3 : 2;
      break;
    case State::kStart:
      rank = 2;
      break;
    case State::kUnloading:
      rank = 1;
      break;
    case State::kEnd:
      rank = 0;
      break;
  }
  return {rank, record.files.generation};
}

VersionEntry EntryOf(const VersionRecord& record) {
  VersionEntry entry;
  entry.number = record.number;
  entry.generation = record.files.generation;
  entry.state = record.state;
  entry.status = record.status;
  entry.since = record.since;
  entry.will_retry = record.failure == Failure::kTransient || record.failure == Failure::kCrashLoop;
  entry.restarting = record.state == State::kLoading && record.was_available;
  entry.directory = record.files.directory;
  entry.replicas_live = record.live();
  entry.replicas_wanted = Active(record.state) ? ReplicasWanted(record, record.config) : 0;
  entry.restarts = record.restarts;
  entry.handle = record.handle;
  for (const WorkerRecord& worker : record.workers) {
    entry.memory_estimate_bytes += record.files.memory_estimate_bytes;
    if (worker.state != WorkerState::kLoading) entry.memory_bytes += worker.memory_bytes;
  }
  if (record.info.has_value()) {
    const engine::ModelInfo& info = *record.info;
    entry.stateful_reason = info.stateful_reason;
    entry.warnings = info.warnings;
    entry.sandbox = info.sandbox;
    entry.sandbox_grade = info.sandbox_grade;
    entry.sandbox_stage = info.sandbox_stage;
    entry.runtime_version = info.runtime_version;
    entry.devices = info.devices;
    entry.load_time = absl::Microseconds(info.load_microseconds);
    entry.warm_up_time = absl::Microseconds(info.warm_up_microseconds);
    entry.warm_up_runs = info.warm_up_runs;
    entry.warm_up_source = info.warm_up_source;
    for (const auto& [signature, reason] : info.alone) {
      entry.alone.push_back(base::Cat(signature, ": ", reason));
    }
    entry.two_sessions = info.two_widths;
  }
  return entry;
}

// What an operator should know about a version that serves.
void AddWarnings(const VersionRecord& record, const DesiredModel& desired, bool listed_now,
                 VersionEntry* entry) {
  if (record.state != State::kAvailable) return;
  if (record.live() < entry->replicas_wanted && !record.last_error.ok()) {
    entry->warnings.push_back(base::Cat(record.live(), " of ", entry->replicas_wanted,
                                        " replicas serve: ", base::Message(record.last_error)));
  }
  if (entry->replicas_wanted < desired.config.replicas && record.stateful()) {
    entry->warnings.push_back(
        base::Cat("one replica instead of ", desired.config.replicas, ": the model keeps state"));
  }
  if (!listed_now || !SameSpec(record.config, desired.config)) return;
  const auto found = std::ranges::find(desired.found, record.number, &FoundVersion::number);
  if (found == desired.found.end()) {
    entry->warnings.emplace_back(
        "its directory is gone: it serves on, but could not be started again (to go back to an "
        "older version, ask for it by a specific version policy)");
  } else if (found->fingerprint != record.fingerprint) {
    entry->warnings.emplace_back(
        "its files changed after it was loaded and were not read again: publish changed files as a "
        "new version");
  }
}

// Versions that would be wanted if only their files were complete.
void AddIncomplete(const DesiredModel& desired, const SourceState& source, absl::Time now,
                   std::map<int64_t, VersionEntry, std::greater<>>* entries) {
  std::vector<Candidate> candidates;
  std::set<int64_t> labelled;
  for (const FoundVersion& found : desired.found) candidates.push_back({.number = found.number});
  for (const auto& [label, number] : desired.config.labels) labelled.insert(number);
  for (const int64_t number : Choose(desired.config.policy, candidates, labelled)) {
    const auto found = std::ranges::find(desired.found, number, &FoundVersion::number);
    if (found->complete) continue;
    const auto shown = entries->find(number);
    if (shown != entries->end() && shown->second.state != State::kEnd) continue;
    const auto at = source.incomplete.find(number);
    VersionEntry entry;
    entry.number = number;
    entry.since = at == source.incomplete.end() ? now : at->second.since;
    entry.directory = found->directory;
    const bool given_up = entry.since + limits::kIncompleteWaitMax <= now;
    entry.state = given_up ? State::kEnd : State::kStart;
    entry.status = absl::FailedPreconditionError(
        base::Cat("the files in ", found->directory, " are not complete: ", found->reason,
                  given_up ? "; it is loaded when they are" : ""));
    (*entries)[number] = std::move(entry);
  }
}

void AddSubstitutes(const DesiredModel& desired, std::vector<VersionEntry>* versions) {
  if (desired.config.policy.kind != VersionPolicy::Kind::kLatest) return;
  const VersionEntry* failed = nullptr;
  for (VersionEntry& entry : *versions) {
    if (entry.state == State::kEnd && !entry.status.ok()) failed = &entry;
    if (entry.state == State::kAvailable && failed != nullptr) {
      entry.warnings.push_back(
          base::Cat("serves in place of version ", failed->number, ", which failed"));
    }
  }
}

std::string Failed(const std::string& name, const VersionEntry* entry, const absl::Status& status) {
  return base::Cat("{{name: ", name,
                   entry == nullptr ? std::string() : base::Cat(" version: ", entry->number),
                   "} due to error: ", std::string(absl::StatusCodeToString(status.code())), ": ",
                   base::Message(status), "}");
}

}  // namespace

std::shared_ptr<const ModelEntry> View(const DesiredModel* desired, const SourceState* source,
                                       const ObservedModel& observed, absl::Time now) {
  auto model = std::make_shared<ModelEntry>();
  std::map<int64_t, const VersionRecord*> best;
  for (const VersionRecord& record : observed.versions) {
    const VersionRecord*& shown = best[record.number];
    if (shown == nullptr || Rank(*shown) < Rank(record)) shown = &record;
  }
  std::map<int64_t, VersionEntry, std::greater<>> entries;
  for (const auto& [number, record] : best) {
    VersionEntry entry = EntryOf(*record);
    if (desired != nullptr) AddWarnings(*record, *desired, source->status.ok(), &entry);
    entries[number] = std::move(entry);
  }
  for (const VersionRecord& record : observed.versions) {
    if (record.state == State::kUnloading && best.at(record.number) != &record) {
      model->unloading.emplace_back(record.number, record.files.generation);
    }
  }
  model->configured = desired != nullptr;
  if (desired != nullptr) {
    AddIncomplete(*desired, *source, now, &entries);
    model->base_path = desired->config.base_path;
    model->named = desired->config.policy.specific;
    model->labels = desired->labels;
    model->source = source->status;
    model->looked_at = source->looked_at;
  } else if (!observed.versions.empty()) {
    model->base_path = observed.versions.back().config.base_path;
  }
  for (auto& [number, entry] : entries) model->versions.push_back(std::move(entry));
  if (desired != nullptr) AddSubstitutes(*desired, &model->versions);
  return model;
}

Progress ProgressOf(const std::string& name, const ModelEntry& entry) {
  const VersionEntry* failed = nullptr;
  bool pending = false;
  for (const VersionEntry& version : entry.versions) {
    if (version.state == State::kAvailable) return {Progress::Kind::kAvailable, ""};
    pending |= version.state == State::kStart || version.state == State::kLoading;
    if (failed == nullptr && version.state == State::kEnd && !version.status.ok()) {
      failed = &version;
    }
  }
  if (pending) return {Progress::Kind::kPending, ""};
  if (failed != nullptr) {
    return {.kind = Progress::Kind::kFailed, .error = Failed(name, failed, failed->status)};
  }
  if (entry.source.ok() || !entry.looked_at) return {Progress::Kind::kPending, ""};
  return {.kind = Progress::Kind::kNothing, .error = Failed(name, nullptr, entry.source)};
}

}  // namespace tensord::models
