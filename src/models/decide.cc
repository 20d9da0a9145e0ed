// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/decide.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <tuple>

#include "base/limits.h"
#include "base/text.h"
#include "models/ledger.h"
#include "models/version_policy.h"

namespace tensord::models {
namespace {

// A worker that is missing.
struct Need {
  const std::string* model = nullptr;
  const VersionRecord* record = nullptr;
  const ModelConfig* config = nullptr;
  int nth = 0;           // 0: its version's first.
  bool restart = false;  // Another lived in its place.
  bool serves = false;   // The model has an available version.
};

class Planner {
 public:
  Planner(const Desired& desired, const Observed& observed, absl::Time now)
      : desired_(desired),
        observed_(observed),
        now_(now),
        ledger_(desired.options.memory_bytes_max) {
    for (const auto& [name, model] : observed_.models) CountWorkers(name, model);
  }

  Decision Plan() {
    for (const auto& [name, model] : observed_.models) {
      if (!desired_.models.contains(name)) RetireAll(name, model);
    }
    for (const auto& [name, model] : desired_.models) PlanModel(name, model);
    PlanStarts();
    return std::move(decision_);
  }

 private:
  void CountWorkers(const std::string& name, const ObservedModel& model) {
    for (const VersionRecord& record : model.versions) {
      for (const WorkerRecord& worker : record.workers) {
        ledger_.Add(name, worker.memory_bytes);
        if (worker.state == WorkerState::kStopping) stopping_ = true;
        if (worker.state != WorkerState::kLoading) continue;
        ++loads_;
        ++loads_of_[name];
        if (worker.restart) continue;
        const absl::Time stands_aside = worker.since + limits::kLoadStandsAside;
        if (stands_aside <= now_) continue;
        ++first_loads_;
        aside_ = std::min(aside_, stands_aside);
      }
    }
  }

  void RetireAll(const std::string& name, const ObservedModel& model) {
    for (const VersionRecord& record : model.versions) {
      if (Active(record.state)) DoRetire(name, record);
    }
  }

  void PlanModel(const std::string& name, const DesiredModel& model) {
    static const ObservedModel kNothing;
    const auto at = observed_.models.find(name);
    const ObservedModel& observed = at == observed_.models.end() ? kNothing : at->second;
    const bool serves = std::ranges::any_of(observed.versions, [](const VersionRecord& record) {
      return record.state == State::kAvailable;
    });
    const std::vector<int64_t> wanted = Wanted(name, model, observed, serves);
    size_t settled = 0;
    for (const int64_t number : wanted) {
      const VersionRecord* current = Current(model, observed, number);
      if (current == nullptr) {
        DoBegin(name, model, observed, number);
        continue;
      }
      if (Settled(name, model, *current)) ++settled;
      StopSurplus(*current, current->Running() - ReplicasWanted(*current, model.config));
      PlanWorkers(name, model, *current, model.config, serves);
    }
    PlanUnwanted(name, model, observed, wanted, settled);
  }

  // The record that a wanted version has, if any: started or to be started for this configuration.
  static const VersionRecord* Current(const DesiredModel& model, const ObservedModel& observed,
                                      int64_t number) {
    for (const VersionRecord& record : observed.versions) {
      if (record.number == number && Active(record.state) &&
          SameSpec(record.config, model.config)) {
        return &record;
      }
    }
    return nullptr;
  }

  static const FoundVersion* Found(const DesiredModel& model, int64_t number) {
    const auto at = std::ranges::find(model.found, number, &FoundVersion::number);
    return at == model.found.end() || !at->complete ? nullptr : &*at;
  }

  // The ended record that says that loading these files again is no use.
  const VersionRecord* FailedRecord(const std::string& name, const DesiredModel& model,
                                    const ObservedModel& observed,
                                    const FoundVersion& found) const {
    for (const VersionRecord& record : observed.versions) {
      if (record.number != found.number || record.state != State::kEnd) continue;
      if (record.failure == Failure::kNone || record.fingerprint != found.fingerprint) continue;
      if (!SameSpec(record.config, model.config)) continue;
      if (record.failure == Failure::kMemory && Admit(name, record, model.config).ok()) continue;
      return &record;
    }
    return nullptr;
  }

  std::vector<int64_t> Wanted(const std::string& name, const DesiredModel& model,
                              const ObservedModel& observed, bool serves) {
    std::map<int64_t, Candidate, std::greater<>> candidates;
    std::map<int64_t, Candidate, std::greater<>> second_chance;
    for (const FoundVersion& found : model.found) {
      if (!found.complete) continue;
      const VersionRecord* failed = FailedRecord(name, model, observed, found);
      candidates[found.number] = {.number = found.number, .failed = failed != nullptr};
      if (failed == nullptr ||
          (failed->failure != Failure::kTransient && failed->failure != Failure::kCrashLoop)) {
        continue;
      }
      second_chance[found.number] = {.number = found.number, .failed = failed->not_before > now_};
      if (!serves && failed->not_before > now_) Wake(failed->not_before);
    }
    for (const VersionRecord& record : observed.versions) {
      const bool here = Active(record.state) && record.Running() > 0;
      if (here && SameSpec(record.config, model.config) && !Deleted(model, record.number)) {
        candidates[record.number] = {.number = record.number};
      }
    }
    std::vector<int64_t> wanted = ChooseFrom(model, candidates);
    if (wanted.empty() && !serves) wanted = ChooseFrom(model, second_chance);
    return wanted;
  }

  // Its directory is not in a base path that can be listed, and that is to unload it.
  bool Deleted(const DesiredModel& model, int64_t number) const {
    return desired_.options.unload_missing && model.listed &&
           std::ranges::find(model.found, number, &FoundVersion::number) == model.found.end();
  }

  // As the original sees it: whatever state its files are in.
  bool NothingExists(const DesiredModel& model) const {
    if (!desired_.options.unload_missing || !model.listed) return false;
    std::map<int64_t, Candidate, std::greater<>> all;
    for (const FoundVersion& found : model.found) all[found.number] = {.number = found.number};
    return ChooseFrom(model, all).empty();
  }

  static std::vector<int64_t> ChooseFrom(
      const DesiredModel& model, const std::map<int64_t, Candidate, std::greater<>>& candidates) {
    std::vector<Candidate> list;
    list.reserve(candidates.size());
    for (const auto& [number, candidate] : candidates) list.push_back(candidate);
    std::set<int64_t> labelled;
    for (const auto& [label, number] : model.labels) labelled.insert(number);
    for (const auto& [label, number] : model.config.labels) labelled.insert(number);
    return Choose(model.config.policy, list, labelled);
  }

  void DoBegin(const std::string& name, const DesiredModel& model, const ObservedModel& observed,
               int64_t number) {
    const FoundVersion* found = Found(model, number);
    if (found == nullptr) return;
    // One that is still unloading is waited for.
    const bool unloading = std::ranges::any_of(observed.versions, [&](const VersionRecord& record) {
      return record.number == number && record.state == State::kUnloading &&
             SameSpec(record.config, model.config);
    });
    if (!unloading) decision_.actions.emplace_back(Begin{.model = name, .found = *found});
  }

  void DoRetire(const std::string& name, const VersionRecord& record) {
    decision_.actions.emplace_back(
        Retire{.model = name, .number = record.number, .generation = record.files.generation});
  }

  // All workers of a generation load the same contents: with other files on disk, those that live
  // stay as they are, and a version without any takes the new files.
  void PlanWorkers(const std::string& name, const DesiredModel& model, const VersionRecord& record,
                   const ModelConfig& config, bool serves) {
    if (!record.FilesStand()) {
      if (record.live() > 0) return;
      const FoundVersion* found = SamePath(model, record) ? Found(model, record.number) : nullptr;
      if (found != nullptr && record.workers.empty()) {
        decision_.actions.emplace_back(
            Renew{.model = name, .generation = record.files.generation, .found = *found});
      }
      return;
    }
    PlanReplicas(name, config, record, serves);
  }

  static bool SamePath(const DesiredModel& model, const VersionRecord& record) {
    return record.config.base_path == model.config.base_path;
  }

  // Serves with all its workers, or with as many as it can get.
  bool Settled(const std::string& name, const DesiredModel& model,
               const VersionRecord& record) const {
    if (record.state != State::kAvailable) return false;
    return record.live() >= ReplicasWanted(record, model.config) || record.load_failures > 0 ||
           !record.FilesStand() || !Admit(name, record, model.config).ok();
  }

  void PlanReplicas(const std::string& name, const ModelConfig& config, const VersionRecord& record,
                    bool serves) {
    const int wanted = ReplicasWanted(record, config);
    const int running = record.Running();
    if (running >= wanted) return;
    if (record.not_before > now_) return Wake(record.not_before);
    for (int nth = running; nth < wanted; ++nth) {
      needs_.push_back({.model = &name,
                        .record = &record,
                        .config = &config,
                        .nth = nth,
                        .restart = record.was_available && nth < record.live_max,
                        .serves = serves});
    }
  }

  // Those that do not serve yet first, then the highest replica numbers.
  void StopSurplus(const VersionRecord& record, int surplus) {
    if (surplus <= 0) return;
    std::vector<const WorkerRecord*> running;
    for (const WorkerRecord& worker : record.workers) {
      if (worker.state != WorkerState::kStopping) running.push_back(&worker);
    }
    std::ranges::sort(running, {}, [](const WorkerRecord* worker) {
      return std::pair(worker->state == WorkerState::kLive, -worker->key.replica);
    });
    running.resize(std::min(running.size(), static_cast<size_t>(surplus)));
    for (const WorkerRecord* worker : running) decision_.actions.emplace_back(Stop{worker->key});
  }

  void PlanUnwanted(const std::string& name, const DesiredModel& model,
                    const ObservedModel& observed, const std::vector<int64_t>& wanted,
                    size_t settled) {
    std::vector<const VersionRecord*> unwanted;
    for (const VersionRecord& record : observed.versions) {
      if (!Active(record.state)) continue;
      const bool is_wanted = std::ranges::find(wanted, record.number) != wanted.end() &&
                             SameSpec(record.config, model.config);
      if (!is_wanted) unwanted.push_back(&record);
    }
    std::ranges::sort(unwanted, std::greater<>(), [](const VersionRecord* record) {
      return std::pair(record->number, record->files.generation);
    });
    size_t keep =
        NothingExists(model) ? 0 : Substitutes(model.config.policy, wanted.size(), settled);
    for (const VersionRecord* record : unwanted) {
      // Something runs, or can be started again.
      const bool under_way =
          record->Running() > 0 || (record->was_available && record->FilesStand());
      if (keep == 0 || !under_way) {
        DoRetire(name, *record);
      } else if (record->state == State::kAvailable) {
        --keep;
      } else if (record->was_available && record->Running() == 0) {
        // It is what there is, so it comes back when it dies.
        PlanWorkers(name, model, *record, record->config, false);
      }
    }
  }

  absl::Status Admit(const std::string& name, const VersionRecord& record,
                     const ModelConfig& config) const {
    return ledger_.Admit({.model = name,
                          .version = record.number,
                          .bytes = record.files.memory_estimate_bytes,
                          .worker_bytes_max = config.worker.worker_memory_bytes_max,
                          .model_bytes_max = config.memory_bytes_max});
  }

  void PlanStarts() {
    auto order = [this](const Need& need) {
      const auto at = loads_of_.find(*need.model);
      const int loads = at == loads_of_.end() ? 0 : at->second;
      return std::tuple(!need.restart, loads, need.serves, need.nth, -need.record->number);
    };
    while (!needs_.empty() && loads_ < limits::kLoadsInFlightMax) {
      const auto best = std::ranges::min_element(needs_, {}, order);
      const Need need = *best;
      if (!need.restart && first_loads_ >= limits::kLoadsInFlight) return Wake(aside_);
      needs_.erase(best);
      PlanStart(need);
    }
  }

  void PlanStart(const Need& need) {
    const VersionRecord& record = *need.record;
    if (const absl::Status status = Admit(*need.model, record, *need.config); !status.ok()) {
      // One more replica can wait; so can all while memory may be on its way back.
      if (!record.workers.empty() || stopping_ || !handled_.insert(&record).second) return;
      decision_.actions.emplace_back(Refuse{.model = *need.model,
                                            .number = record.number,
                                            .generation = record.files.generation,
                                            .status = status});
      return;
    }
    handled_.insert(&record);
    ledger_.Add(*need.model, record.files.memory_estimate_bytes);
    ++loads_;
    ++loads_of_[*need.model];
    if (!need.restart) {
      ++first_loads_;
      aside_ = std::min(aside_, now_ + limits::kLoadStandsAside);
    }
    const bool lite = record.files.tflite;
    fleet::WorkerKey key{.model = *need.model,
                         .version = record.number,
                         .replica = FreeReplica(*need.model, record.number),
                         .kind = lite ? fleet::WorkerKind::kLiteRt : fleet::WorkerKind::kTensorFlow,
                         .runtime = lite ? fleet::kLiteRtRuntime : record.config.worker.runtime};
    taken_.insert(key);
    decision_.actions.emplace_back(
        Start{.key = std::move(key), .generation = record.files.generation});
  }

  // The lowest number that no worker of any generation of this version has.
  int FreeReplica(const std::string& name, int64_t number) const {
    std::set<int> used;
    for (const VersionRecord& record : observed_.models.at(name).versions) {
      if (record.number != number) continue;
      for (const WorkerRecord& worker : record.workers) used.insert(worker.key.replica);
    }
    for (const fleet::WorkerKey& key : taken_) {
      if (key.model == name && key.version == number) used.insert(key.replica);
    }
    int replica = 0;
    while (used.contains(replica)) ++replica;
    return replica;
  }

  void Wake(absl::Time when) { decision_.wake = std::min(decision_.wake, when); }

  const Desired& desired_;
  const Observed& observed_;
  const absl::Time now_;

  Ledger ledger_;
  bool stopping_ = false;  // Some worker is on its way out.
  int loads_ = 0;
  int first_loads_ = 0;  // Of which young first loads.
  std::map<std::string, int> loads_of_;
  absl::Time aside_ = absl::InfiniteFuture();  // When the first of these gives up its place.

  std::vector<Need> needs_;
  std::set<fleet::WorkerKey> taken_;
  std::set<const VersionRecord*> handled_;  // Got a Start or a Refuse.
  Decision decision_;
};

}  // namespace

Decision Decide(const Desired& desired, const Observed& observed, absl::Time now) {
  return Planner(desired, observed, now).Plan();
}

std::string ToString(const Action& action) {
  struct Printer {
    std::string operator()(const Begin& a) const {
      return base::Cat("begin ", a.model, "/", a.found.number);
    }
    std::string operator()(const Renew& a) const {
      return base::Cat("renew ", a.model, "/", a.found.number);
    }
    std::string operator()(const Start& a) const { return base::Cat("start ", ToString(a.key)); }
    std::string operator()(const Stop& a) const { return base::Cat("stop ", ToString(a.key)); }
    std::string operator()(const Retire& a) const {
      return base::Cat("retire ", a.model, "/", a.number);
    }
    std::string operator()(const Refuse& a) const {
      return base::Cat("refuse ", a.model, "/", a.number);
    }
  };
  return std::visit(Printer{}, action);
}

const std::string& ModelOf(const Action& action) {
  struct Namer {
    const std::string& operator()(const Begin& a) const { return a.model; }
    const std::string& operator()(const Renew& a) const { return a.model; }
    const std::string& operator()(const Start& a) const { return a.key.model; }
    const std::string& operator()(const Stop& a) const { return a.key.model; }
    const std::string& operator()(const Retire& a) const { return a.model; }
    const std::string& operator()(const Refuse& a) const { return a.model; }
  };
  return std::visit(Namer{}, action);
}

}  // namespace tensord::models
