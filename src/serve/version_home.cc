// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/version_home.h"

#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "wire/signatures.h"

namespace tensord::serve {
namespace {

// By signature: whether its calls go through what the original calls a batching session.
std::vector<bool> BatchedByOperator(const sched::QueueOptions& options) {
  std::vector<bool> batched;
  for (const sched::SignatureRows& signature : options.signatures) {
    batched.push_back(options.batching.has_value() &&
                      signature.open != sched::SignatureRows::Open::kNo);
  }
  return batched;
}

std::vector<sched::RunTimeHint> MeasuredBy(const engine::ModelInfo& info) {
  std::vector<sched::RunTimeHint> hints;
  for (const engine::RunTime& time : info.run_times) {
    if (time.signature > INT32_MAX || time.nanoseconds > INT64_MAX) continue;
    hints.push_back({.signature = static_cast<int>(time.signature),
                     .rows = time.rows,
                     .time = absl::Nanoseconds(static_cast<int64_t>(time.nanoseconds))});
  }
  return hints;
}

absl::Status Changed(const VersionId& id) {
  return absl::FailedPreconditionError(
      base::Cat("the files of model ", id.model, ", version ", id.version,
                " changed while it serves; put new files into a new version directory"));
}

}  // namespace

absl::StatusOr<VersionHome::Version*> VersionHome::MakeVersion(const VersionId& id,
                                                               const engine::ModelInfo& info,
                                                               VersionSetup setup) {
  ASSIGN_OR_RETURN(tensor::SignatureList signatures, wire::ParseSignatures(info.signature_def_map));
  setup.queue.signatures = sched::RowsOf(signatures);
  for (size_t i = 0; i < signatures.size(); ++i) {
    setup.queue.signatures[i].apart = !info.alone.contains(signatures[i].name);
  }
  setup.queue.stateful = !info.stateful_reason.empty();
  std::shared_ptr<obs::VersionMetrics> metrics = setup.metrics->Version(id.model, id.version);
  const std::vector<bool> batched = BatchedByOperator(setup.queue);
  setup.queue.on_run = [metrics, batched,
                        runs = &setup.metrics->runs()](const sched::RunEvent& run) {
    metrics->CountRun(run.rows);
    runs->CountRun(run.run_time);
    if (batched[static_cast<size_t>(run.signature)]) runs->CountBatch(run.rows, run.pad_rows);
  };
  auto servable = std::make_shared<front::Servable>();
  servable->model = id.model;
  servable->version = id.version;
  servable->signatures = std::move(signatures);
  servable->signature_def_map = info.signature_def_map;
  servable->stateful = !info.stateful_reason.empty();
  servable->home = &loop_;
  servable->metrics = &setup.metrics->Model(id.model);
  for (const tensor::Signature& signature : servable->signatures) {
    servable->signature_metrics.push_back(metrics->Signature(signature.name));
  }
  servable->version_metrics = std::move(metrics);
  servable->batched = batched;
  servable->request_log = std::move(setup.request_log);
  Version& version = versions_[id];
  version.queue = std::make_unique<sched::VersionQueue>(loop_, std::move(setup.queue));
  version.queue->Seed(
      HintsFor(*setup.run_times, id.model, id.version, servable->signatures, MeasuredBy(info)));
  servable->queue = version.queue.get();
  version.servable = std::move(servable);
  return &version;
}

absl::StatusOr<std::shared_ptr<front::Servable>> VersionHome::AddWorker(
    const VersionId& id, fleet::Worker* worker, const engine::ModelInfo& info, VersionSetup setup) {
  const auto at = versions_.find(id);
  Version* version = at == versions_.end() ? nullptr : &at->second;
  if (version == nullptr) {
    ASSIGN_OR_RETURN(version, MakeVersion(id, info, std::move(setup)));
  } else {
    // By content: every load serializes its maps in another order.
    ASSIGN_OR_RETURN(const tensor::SignatureList signatures,
                     wire::ParseSignatures(info.signature_def_map));
    if (!tensor::SameCalls(version->servable->signatures, signatures)) return Changed(id);
  }
  version->workers.push_back(worker);
  version->queue->AddWorker(worker);
  return version->servable;
}

void VersionHome::RemoveWorker(const VersionId& id, fleet::Worker* worker) {
  const auto at = versions_.find(id);
  if (at == versions_.end()) return;
  Version& version = at->second;
  if (std::erase(version.workers, worker) > 0) version.copied_before += worker->CopiedBytes();
  version.queue->RemoveWorker(worker);
}

void VersionHome::OnWorkerFree(const VersionId& id) {
  const auto at = versions_.find(id);
  if (at != versions_.end()) at->second.queue->OnWorkerFree();
}

void VersionHome::Drain(const VersionId& id, loop::Task done) {
  const auto at = versions_.find(id);
  if (at == versions_.end()) return done();
  at->second.queue->Drain([this, id, done = std::move(done)]() mutable {
    // Kept from the map's destructor order: `done` may ask for this version again.
    auto gone = versions_.extract(id);
    if (!gone.empty()) gone.mapped().servable->queue = nullptr;
    done();
  });
}

void VersionHome::Drop(const VersionId& id, const absl::Status& status) {
  auto gone = versions_.extract(id);
  if (gone.empty()) return;
  gone.mapped().servable->queue = nullptr;
  gone.mapped().queue->FailAll(status);
}

std::vector<VersionStats> VersionHome::Collect() const {
  std::vector<VersionStats> all;
  for (const auto& [id, version] : versions_) {
    sched::Stats stats = version.queue->stats();
    uint64_t copied = version.copied_before + stats.received_bytes;
    for (const fleet::Worker* worker : version.workers) copied += worker->CopiedBytes();
    VersionStats& line = all.emplace_back(VersionStats{id, std::move(stats), copied});
    const tensor::SignatureList& signatures = version.servable->signatures;
    for (size_t i = 0; i < signatures.size(); ++i) {
      for (const sched::RunTimeHint& time : line.stats.signatures[i].run_times) {
        line.run_times[{id.model, id.version, signatures[i].name}][time.rows] = time.time;
      }
    }
  }
  return all;
}

}  // namespace tensord::serve
