// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/metrics_page.h"

#include <utility>

#include "base/text.h"
#include "serve/process_memory.h"

namespace tensord::serve {
namespace {

using obs::Metric;

void ShowUnserved(obs::Metrics* metrics, const VersionStats& version) {
  const sched::Stats& stats = version.stats;
  const std::pair<const char*, int64_t> reasons[] = {{"queue_full", stats.refused_full},
                                                     {"too_late", stats.refused_late},
                                                     {"shed", stats.refused_shed},
                                                     {"share", stats.refused_share},
                                                     {"expired_queued", stats.expired_queued},
                                                     {"hopeless", stats.hopeless},
                                                     {"poison", stats.refused_poison},
                                                     {"expired_running", stats.expired_running},
                                                     {"cancelled", stats.cancelled}};
  for (const auto& [reason, count] : reasons) {
    metrics->SetTotal(Metric::kShed, {version.id.model, base::Cat(version.id.version), reason},
                      static_cast<double>(count));
  }
}

void ShowQueues(obs::Metrics* metrics, const std::vector<VersionStats>& versions) {
  metrics->Clear(Metric::kQueueCalls);
  metrics->Clear(Metric::kInFlightRuns);
  metrics->Clear(Metric::kCopiedBytes);
  metrics->Clear(Metric::kWorkerLost);
  metrics->Clear(Metric::kShed);
  metrics->Clear(Metric::kWastedRunTime);
  metrics->Clear(Metric::kRefusedEarly);
  for (const VersionStats& version : versions) {
    const std::vector<std::string> labels = {version.id.model, base::Cat(version.id.version)};
    obs::Set(metrics->Gauge(Metric::kQueueCalls, labels),
             static_cast<double>(version.stats.queued_calls));
    obs::Set(metrics->Gauge(Metric::kInFlightRuns, labels),
             static_cast<double>(version.stats.running_runs));
    metrics->SetTotal(Metric::kCopiedBytes, labels, static_cast<double>(version.copied_bytes));
    metrics->SetTotal(Metric::kWorkerLost, labels, static_cast<double>(version.stats.lost));
    metrics->SetTotal(Metric::kWastedRunTime, labels,
                      absl::ToDoubleSeconds(version.stats.wasted_run_time));
    metrics->SetTotal(Metric::kRefusedEarly, labels,
                      static_cast<double>(version.stats.refused_early));
    ShowUnserved(metrics, version);
  }
}

void ShowStates(obs::Metrics* metrics, const models::Snapshot& snapshot) {
  metrics->Clear(Metric::kVersionState);
  metrics->Clear(Metric::kWorkerRestarts);
  metrics->Clear(Metric::kReplicas);
  metrics->Clear(Metric::kSandboxGrade);
  metrics->Clear(Metric::kSandboxStage);
  metrics->Clear(Metric::kSourceOk);
  for (const auto& [name, model] : snapshot.models) {
    if (model->configured && model->looked_at) {
      obs::Set(metrics->Gauge(Metric::kSourceOk, {name}), model->source.ok() ? 1 : 0);
    }
    for (const models::VersionEntry& version : model->versions) {
      const std::string number = base::Cat(version.number);
      const std::string state(models::StateName(version.state));
      obs::Set(metrics->Gauge(Metric::kVersionState, {name, number, state}), 1);
      obs::Set(metrics->Gauge(Metric::kWorkerRestarts, {name, number}), version.restarts);
      obs::Set(metrics->Gauge(Metric::kReplicas, {name, number, "live"}), version.replicas_live);
      obs::Set(metrics->Gauge(Metric::kReplicas, {name, number, "wanted"}),
               version.replicas_wanted);
      if (version.sandbox_grade.empty()) continue;  // No worker has said it yet.
      obs::Set(metrics->Gauge(Metric::kSandboxGrade, {name, number}),
               'E' - version.sandbox_grade[0]);
      obs::Set(metrics->Gauge(Metric::kSandboxStage, {name, number}), version.sandbox_stage);
    }
  }
}

void ShowMemory(obs::Metrics* metrics, const PageFacts& facts) {
  metrics->Clear(Metric::kPssBytes);
  const auto show = [metrics](int pid, std::vector<std::string> labels) {
    if (const auto bytes = PssBytes(pid)) {
      obs::Set(metrics->Gauge(Metric::kPssBytes, labels), static_cast<double>(*bytes));
    }
  };
  show(facts.front_pid, {"front", "", ""});
  show(facts.supervisor_pid, {"supervisor", "", ""});
  for (const auto& [key, pid] : facts.worker_pids) {
    show(pid, {"worker", key.model, base::Cat(key.version)});
  }
}

}  // namespace

std::string MetricsPage(obs::Metrics* metrics, const PageFacts& facts) {
  ShowQueues(metrics, facts.versions);
  ShowStates(metrics, *facts.snapshot);
  ShowMemory(metrics, facts);
  obs::Set(metrics->Gauge(Metric::kBudgetBytes, {}), static_cast<double>(facts.request_bytes_held));
  obs::Set(metrics->Gauge(Metric::kConnections, {}), static_cast<double>(facts.connections));
  if (facts.access_log != nullptr) {
    const auto show = [metrics](const char* result, uint64_t lines) {
      metrics->SetTotal(Metric::kAccessLogLines, {result}, static_cast<double>(lines));
    };
    show("written", facts.access_log->lines());
    show("dropped", facts.access_log->dropped());
  }
  return metrics->Page();
}

}  // namespace tensord::serve
