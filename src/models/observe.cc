// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/observe.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "models/ledger.h"

namespace tensord::models {
namespace {

using fleet::WorkerKey;

void Move(VersionRecord* record, State to, absl::Time now) {
  if (record->state == to) return;
  TENSORD_CHECK(Allowed(record->state, to));
  record->state = to;
  record->since = now;
}

// Keeps the last kEndedVersionsMax versions that are over.
void Forget(ObservedModel* model) {
  auto over = [](const VersionRecord& record) { return record.state == State::kEnd; };
  auto older = [&](const VersionRecord& a, const VersionRecord& b) {
    if (over(a) != over(b)) return over(a);
    return std::pair(a.since, a.number) < std::pair(b.since, b.number);
  };
  while (std::ranges::count_if(model->versions, over) > limits::kEndedVersionsMax) {
    model->versions.erase(std::ranges::min_element(model->versions, older));
  }
}

void Fail(VersionRecord* record, Failure failure, absl::Status status, absl::Time now) {
  record->failure = failure;
  record->status = std::move(status);
  record->handle = nullptr;
  Move(record, State::kEnd, now);
}

void EndIfDrained(VersionRecord* record, absl::Time now) {
  if (record->state != State::kUnloading || !record->workers.empty()) return;
  record->handle = nullptr;
  Move(record, State::kEnd, now);
}

// Loading the same files once more would end the same way.
bool Permanent(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

VersionRecord* Find(Observed* observed, const std::string& model, int64_t number,
                    uint64_t generation) {
  const auto at = observed->models.find(model);
  if (at == observed->models.end()) return nullptr;
  for (VersionRecord& record : at->second.versions) {
    if (record.number == number && record.files.generation == generation) return &record;
  }
  return nullptr;
}

VersionFiles FilesOf(const FoundVersion& found, uint64_t generation) {
  return {.directory = found.directory,
          .generation = generation,
          .bytes = found.bytes,
          .memory_estimate_bytes = Ledger::Estimate(found.bytes),
          .warm_up_bytes = found.warm_up_bytes,
          .tflite = found.tflite,
          .batching_parameters = found.batching_parameters};
}

// Takes the worker out; true when it was to stop anyway.
bool Take(VersionRecord* record, const WorkerKey& key) {
  const auto at = std::ranges::find(record->workers, key, &WorkerRecord::key);
  const bool stopping = at->state == WorkerState::kStopping;
  record->workers.erase(at);
  return stopping;
}

class Applier {
 public:
  Applier(const Desired& desired, absl::Time now, Observed* observed, Orders* orders)
      : desired_(desired), now_(now), observed_(observed), orders_(orders) {}

  void operator()(const Begin& begin) {
    ObservedModel& model = observed_->models[begin.model];
    VersionRecord fresh;
    fresh.number = begin.found.number;
    fresh.state = State::kEnd;
    const auto over = std::ranges::find_if(model.versions, [&](const VersionRecord& record) {
      return record.number == begin.found.number && record.state == State::kEnd;
    });
    if (over != model.versions.end()) {
      // The same files again: what they did before still counts.
      if (over->fingerprint == begin.found.fingerprint) {
        fresh.deaths = over->deaths;
        fresh.load_failures = over->failure == Failure::kNone ? 0 : over->load_failures;
      }
      fresh.restarts = over->restarts;
      model.versions.erase(over);
    }
    fresh.files = FilesOf(begin.found, ++observed_->last_generation);
    fresh.fingerprint = begin.found.fingerprint;
    fresh.disk_fingerprint = fresh.fingerprint;
    fresh.config = desired_.models.at(begin.model).config;
    Move(&fresh, State::kStart, now_);
    model.versions.push_back(std::move(fresh));
  }

  void operator()(const Renew& renew) {
    VersionRecord* record = Find(observed_, renew.model, renew.found.number, renew.generation);
    TENSORD_CHECK(record != nullptr && record->workers.empty() && Active(record->state));
    VersionRecord fresh;
    fresh.number = record->number;
    fresh.files = FilesOf(renew.found, ++observed_->last_generation);
    fresh.fingerprint = renew.found.fingerprint;
    fresh.disk_fingerprint = fresh.fingerprint;
    fresh.config = record->config;
    fresh.state = record->state;
    fresh.since = record->since;
    fresh.status = record->status;
    fresh.restarts = record->restarts;
    *record = std::move(fresh);
  }

  void operator()(const Start& start) {
    VersionRecord* record = Find(observed_, start.key.model, start.key.version, start.generation);
    TENSORD_CHECK(record != nullptr && Active(record->state));
    record->workers.push_back(
        {.key = start.key,
         .since = now_,
         .restart = record->was_available && record->Running() < record->live_max,
         .memory_bytes = record->files.memory_estimate_bytes});
    if (record->state == State::kStart) Move(record, State::kLoading, now_);
    orders_->push_back({.key = start.key, .start = record->files});
  }

  void operator()(const Stop& stop) {
    WorkerRecord* worker = nullptr;
    VersionRecord* record = observed_->FindWorker(stop.key, &worker);
    TENSORD_CHECK(record != nullptr && worker->state != WorkerState::kStopping);
    StopWorker(worker);
    record->live_max = record->Running();
  }

  void operator()(const Retire& retire) {
    VersionRecord* record = Find(observed_, retire.model, retire.number, retire.generation);
    TENSORD_CHECK(record != nullptr && Active(record->state));
    const bool lost = !record->FilesStand() && record->live() == 0;
    record->status = lost ? absl::NotFoundError(base::Cat("the files in ", record->files.directory,
                                                          " are gone or not complete any more"))
                          : absl::OkStatus();
    for (WorkerRecord& worker : record->workers) {
      if (worker.state != WorkerState::kStopping) StopWorker(&worker);
    }
    if (record->workers.empty()) {
      if (record->state == State::kAvailable) Move(record, State::kUnloading, now_);
      record->handle = nullptr;
      Move(record, State::kEnd, now_);
    } else {
      Move(record, State::kUnloading, now_);
    }
    Forget(&observed_->models[retire.model]);
  }

  void operator()(const Refuse& refuse) {
    VersionRecord* record = Find(observed_, refuse.model, refuse.number, refuse.generation);
    TENSORD_CHECK(record != nullptr && record->workers.empty());
    Fail(record, Failure::kMemory, refuse.status, now_);
    Forget(&observed_->models[refuse.model]);
  }

 private:
  void StopWorker(WorkerRecord* worker) {
    worker->state = WorkerState::kStopping;
    worker->since = now_;
    orders_->push_back({.key = worker->key, .start = std::nullopt});
  }

  const Desired& desired_;
  const absl::Time now_;
  Observed* const observed_;
  Orders* const orders_;
};

}  // namespace

void Apply(const Action& action, const Desired& desired, absl::Time now, Observed* observed,
           Orders* orders) {
  std::visit(Applier(desired, now, observed, orders), action);
}

void Loaded(const WorkerKey& key, const engine::ModelInfo& info, std::shared_ptr<void> handle,
            absl::Time now, Observed* observed) {
  WorkerRecord* worker = nullptr;
  VersionRecord* record = observed->FindWorker(key, &worker);
  // It may have been told to stop while it was loading.
  if (record == nullptr || worker->state != WorkerState::kLoading) return;
  worker->state = WorkerState::kLive;
  worker->since = now;
  // Half the estimate at least: what a worker says of itself does not empty the ledger.
  worker->memory_bytes = std::max(info.private_bytes, record->files.memory_estimate_bytes / 2);
  record->info = info;
  if (handle != nullptr) record->handle = std::move(handle);
  record->status = absl::OkStatus();
  record->load_failures = 0;
  record->was_available = true;
  record->live_max = std::max(record->live_max, record->live());
  Move(record, State::kAvailable, now);
}

void LoadFailed(const WorkerKey& key, const absl::Status& status, const Options& options,
                absl::Time now, Observed* observed) {
  WorkerRecord* worker = nullptr;
  VersionRecord* record = observed->FindWorker(key, &worker);
  if (record == nullptr) return;
  if (Take(record, key)) {
    EndIfDrained(record, now);
    Forget(&observed->models[key.model]);
    return;
  }
  record->last_error = status;
  record->load_failures = std::min(record->load_failures + 1, options.load_retries_max + 1);
  record->not_before = now + LoadRetryPause(record->load_failures, options);
  if (record->live() > 0) {
    // The others serve on; one more is a luxury that can wait.
    record->not_before = now + std::max(options.load_retry_interval, limits::kFailedRetryEvery);
    return;
  }
  record->status = status;
  if (!record->workers.empty()) return;
  if (Permanent(status)) {
    Fail(record, Failure::kLoad, status, now);
  } else if (record->load_failures > options.load_retries_max) {
    record->not_before = now + std::max(options.load_retry_interval, limits::kFailedRetryEvery);
    Fail(record, Failure::kTransient,
         absl::Status(status.code(), base::Cat(base::Message(status), " (tried ",
                                               options.load_retries_max + 1, " times)")),
         now);
  }
  Forget(&observed->models[key.model]);
}

void Died(const WorkerKey& key, std::string_view reason, const Options& options, absl::Time now,
          Observed* observed) {
  WorkerRecord* worker = nullptr;
  VersionRecord* record = observed->FindWorker(key, &worker);
  if (record == nullptr) return;
  if (worker->state != WorkerState::kLive) {
    LoadFailed(key,
               absl::UnavailableError(base::Cat("the worker died while it was loading: ", reason)),
               options, now, observed);
    return;
  }
  Take(record, key);
  std::erase_if(record->deaths, [now](absl::Time at) { return at + limits::kDeathsWindow <= now; });
  record->deaths.push_back(now);
  const int deaths = static_cast<int>(record->deaths.size());
  ++record->restarts;
  record->not_before = now + RestartPause(deaths);
  record->last_error = absl::UnavailableError(base::Cat("its worker died: ", reason));
  if (record->live() > 0) return;
  record->status = record->last_error;
  if (deaths > limits::kDeathsMax && record->workers.empty()) {
    record->not_before = now + limits::kRestartMax;
    Fail(record, Failure::kCrashLoop,
         absl::UnavailableError(base::Cat("crash loop: ", deaths, " workers died within ",
                                          absl::ToInt64Seconds(limits::kDeathsWindow),
                                          " s; the last one: ", reason)),
         now);
    Forget(&observed->models[key.model]);
    return;
  }
  Move(record, State::kLoading, now);
}

void Stopped(const WorkerKey& key, const Options& options, absl::Time now, Observed* observed) {
  WorkerRecord* worker = nullptr;
  VersionRecord* record = observed->FindWorker(key, &worker);
  if (record == nullptr) return;
  if (worker->state != WorkerState::kStopping) {
    Died(key, "it ended without being told to", options, now, observed);
    return;
  }
  Take(record, key);
  EndIfDrained(record, now);
  Forget(&observed->models[key.model]);
}

void Listed(const std::string& model, Listing listing, bool after_error, Desired* desired,
            Observed* observed) {
  DesiredModel& wanted = desired->models.at(model);
  wanted.found = std::move(listing.versions);
  wanted.listed = true;
  for (VersionRecord& record : observed->models[model].versions) {
    if (record.config.base_path != wanted.config.base_path) continue;
    const auto found = std::ranges::find(wanted.found, record.number, &FoundVersion::number);
    const bool loadable = found != wanted.found.end() && found->complete;
    record.disk_fingerprint = loadable ? found->fingerprint : 0;
    if (after_error &&
        (record.failure == Failure::kLoad || record.failure == Failure::kTransient)) {
      record.failure = Failure::kNone;
    }
  }
}

bool MoveLabels(const ObservedModel& observed, DesiredModel* desired) {
  auto serves = [&](int64_t number) {
    return std::ranges::any_of(observed.versions, [number](const VersionRecord& record) {
      return record.number == number && record.state == State::kAvailable;
    });
  };
  const std::map<std::string, int64_t>& configured = desired->config.labels;
  bool moved = std::erase_if(desired->labels, [&](const auto& label) {
                 return !configured.contains(label.first);
               }) > 0;
  for (const auto& [label, number] : configured) {
    const auto [at, added] = desired->labels.try_emplace(label, number);
    moved |= added;
    if (at->second == number || (!serves(number) && serves(at->second))) continue;
    at->second = number;
    moved = true;
  }
  return moved;
}

absl::Duration LoadRetryPause(int failures, const Options& options) {
  if (options.load_retry_interval <= absl::ZeroDuration()) return absl::ZeroDuration();
  absl::Duration pause = limits::kLoadRetryFirst;
  for (int i = 1; i < failures && pause < options.load_retry_interval; ++i) pause *= 2;
  return std::min(pause, options.load_retry_interval);
}

absl::Duration RestartPause(int deaths) {
  absl::Duration pause = limits::kRestartFirst;
  for (int i = 1; i < deaths && pause < limits::kRestartMax; ++i) pause *= 2;
  return std::min(pause, limits::kRestartMax);
}

}  // namespace tensord::models
