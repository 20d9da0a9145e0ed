// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/request_metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace tensord::obs {
namespace {

size_t IndexOf(absl::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kStatusCodes ? index : static_cast<size_t>(absl::StatusCode::kUnknown);
}

size_t IndexOf(Method method, Transport transport) {
  return static_cast<size_t>(method) * kTransports + static_cast<size_t>(transport);
}

bool Infers(Method method) {
  return method == Method::kPredict || method == Method::kClassify || method == Method::kRegress;
}

// What the original counts as a request: over REST also what fits none of its routes.
bool InRequestCount(const RequestFacts& facts) {
  return Infers(facts.method) || (facts.transport == Transport::kRest && facts.rest_api);
}

// The original's word for a call: "Predict" over gRPC, "predict" over REST, nothing for the rest.
std::string ApiLabel(Method method, Transport transport) {
  if (!Infers(method)) return "";
  std::string name(MethodName(method));
  if (transport == Transport::kRest) name[0] = static_cast<char>(name[0] - 'A' + 'a');
  return name;
}

// What a histogram has seen.
Totals Seen(const Lazy<prometheus::Histogram>& series) {
  if (series.get() == nullptr) return {};
  const prometheus::ClientMetric seen = series.get()->Collect();
  return {.count = seen.histogram.sample_count, .microseconds = seen.histogram.sample_sum};
}

}  // namespace

// ---- A signature -----------------------------------------------------------------------------

SignatureMetrics::SignatureMetrics(Metrics* metrics, std::string model, std::string version,
                                   std::string signature)
    : metrics_(metrics),
      model_(std::move(model)),
      version_(std::move(version)),
      signature_(std::move(signature)) {}

SignatureMetrics::~SignatureMetrics() {
  for (const std::atomic<Cells*>& at : cells_) {
    const std::unique_ptr<Cells> cells(at.load());
    if (cells == nullptr) continue;
    for (const Cell& cell : *cells) {
      if (cell.requests.get() != nullptr) metrics_->Remove(Metric::kRequests, cell.requests.get());
      if (cell.time.get() != nullptr) metrics_->Remove(Metric::kRequestTime, cell.time.get());
    }
  }
}

SignatureMetrics::Cells& SignatureMetrics::CellsOf(Method method, Transport transport) {
  std::atomic<Cells*>& at = cells_[IndexOf(method, transport)];
  Cells* cells = at.load(std::memory_order_acquire);
  if (cells != nullptr) return *cells;
  base::MutexLock lock(&mu_);
  cells = at.load(std::memory_order_acquire);
  if (cells == nullptr) {
    cells = std::make_unique<Cells>().release();  // The destructor takes it back.
    at.store(cells, std::memory_order_release);
  }
  return *cells;
}

void SignatureMetrics::Count(const RequestFacts& facts) {
  Cell& cell = CellsOf(facts.method, facts.transport)[IndexOf(facts.code)];
  const auto labels = [this, &facts] {
    return std::vector<std::string>{model_,
                                    version_,
                                    signature_,
                                    std::string(MethodName(facts.method)),
                                    std::string(TransportName(facts.transport)),
                                    std::string(StatusLabel(facts.code))};
  };
  cell.requests.Get([&]() -> auto& { return metrics_->Counter(Metric::kRequests, labels()); })
      .Increment();
  cell.time.Get([&]() -> auto& { return metrics_->Histogram(Metric::kRequestTime, labels()); })
      .Observe(absl::ToDoubleMicroseconds(facts.total));
}

void SignatureMetrics::AddTo(InferenceTotals* totals) const {
  for (size_t method = 0; method < kMethods; ++method) {
    if (!Infers(static_cast<Method>(method)) &&
        static_cast<Method>(method) != Method::kMultiInference) {
      continue;
    }
    for (size_t transport = 0; transport < kTransports; ++transport) {
      const Cells* const cells =
          cells_[method * kTransports + transport].load(std::memory_order_acquire);
      if (cells == nullptr) continue;
      for (size_t code = 0; code < kStatusCodes; ++code) {
        Totals& sum = code == 0 ? totals->succeeded : totals->failed;
        sum.Add(Seen((*cells)[code].time));
      }
    }
  }
}

// ---- A version -------------------------------------------------------------------------------

VersionMetrics::VersionMetrics(Metrics* metrics, std::string model, std::string version)
    : metrics_(metrics), model_(std::move(model)), version_(std::move(version)) {}

VersionMetrics::~VersionMetrics() {
  const auto remove = [this](Metric metric, const Lazy<prometheus::Histogram>& series) {
    if (series.get() != nullptr) metrics_->Remove(metric, series.get());
  };
  for (const auto& stages : stages_) {
    for (const auto& stage : stages) remove(Metric::kStageTime, stage);
  }
  remove(Metric::kBatchRows, batch_rows_);
}

SignatureMetrics* VersionMetrics::Signature(const std::string& name) {
  base::MutexLock lock(&mu_);
  std::unique_ptr<SignatureMetrics>& signature = signatures_[name];
  if (signature == nullptr) {
    signature = std::make_unique<SignatureMetrics>(metrics_, model_, version_, name);
  }
  return signature.get();
}

void VersionMetrics::CountStages(Transport transport,
                                 const std::array<absl::Duration, kStages>& stages) {
  auto& series = stages_[static_cast<size_t>(transport)];
  for (size_t i = 0; i < kStages; ++i) {
    series[i]
        .Get([&]() -> auto& {
          return metrics_->Histogram(Metric::kStageTime,
                                     {model_, version_, std::string(TransportName(transport)),
                                      std::string(StageName(static_cast<Stage>(i)))});
        })
        .Observe(absl::ToDoubleMicroseconds(stages[i]));
  }
}

void VersionMetrics::CountRun(int64_t rows) {
  batch_rows_
      .Get([&]() -> auto& {
        return metrics_->Histogram(Metric::kBatchRows, {model_, version_});
      })
      .Observe(static_cast<double>(rows));
}

InferenceTotals VersionMetrics::Total() {
  InferenceTotals totals;
  for (const auto& transport : stages_) {
    for (size_t stage = 0; stage < kStages; ++stage) {
      totals.stages[stage].Add(Seen(transport[stage]));
    }
  }
  const Totals runs = Seen(batch_rows_);
  totals.runs = runs.count;
  totals.rows = static_cast<uint64_t>(runs.microseconds);  // It counts rows, not time.
  base::MutexLock lock(&mu_);
  for (const auto& [name, signature] : signatures_) signature->AddTo(&totals);
  return totals;
}

// ---- A model ---------------------------------------------------------------------------------

ModelMetrics::ModelMetrics(Metrics* metrics, std::string model)
    : metrics_(metrics), model_(std::move(model)), versionless_(metrics, model_, "") {}

void ModelMetrics::Count(const RequestFacts& facts) {
  if (InRequestCount(facts)) {
    request_count_[IndexOf(facts.code)]
        .Get([&]() -> auto& {
          return metrics_->Counter(Metric::kRequestCount,
                                   {model_, std::string(StatusLabel(facts.code))});
        })
        .Increment();
  }
  if (facts.code != absl::StatusCode::kOk) return;
  CountLatency(facts);
  if (facts.method == Method::kMultiInference) CountExamples(facts.rows);
}

void ModelMetrics::CountLatency(const RequestFacts& facts) {
  if (InRequestCount(facts)) {
    latency_[IndexOf(facts.method, facts.transport)]
        .Get([&]() -> auto& {
          return metrics_->Histogram(Metric::kRequestLatency,
                                     {model_, ApiLabel(facts.method, facts.transport),
                                      facts.transport == Transport::kGrpc ? "GRPC" : "REST"});
        })
        .Observe(absl::ToDoubleMicroseconds(facts.total));
  }
  if (!facts.run_time) return;
  runtime_latency_[static_cast<size_t>(facts.method)]
      .Get([&]() -> auto& {
        return metrics_->Histogram(Metric::kRuntimeLatency,
                                   {model_, std::string(MethodName(facts.method)), "TF1"});
      })
      .Observe(absl::ToDoubleMicroseconds(*facts.run_time));
}

void ModelMetrics::CountExamples(int64_t rows) {
  example_counts_
      .Get([&]() -> auto& { return metrics_->Histogram(Metric::kExampleCounts, {model_}); })
      .Observe(static_cast<double>(rows));
  example_count_total_
      .Get([&]() -> auto& { return metrics_->Counter(Metric::kExampleCountTotal, {model_}); })
      .Increment(static_cast<double>(rows));
}

void ModelMetrics::CountLogged(absl::StatusCode code) {
  metrics_->Counter(Metric::kRequestLogCount, {model_, std::string(StatusLabel(code))}).Increment();
}

// ---- All -------------------------------------------------------------------------------------

RequestMetrics::RequestMetrics(Metrics* metrics)
    : metrics_(metrics),
      unknown_(metrics, std::string("unknown")),
      runs_(metrics),
      loads_(metrics) {}

ModelMetrics& RequestMetrics::Model(const std::string& model) {
  base::MutexLock lock(&mu_);
  const auto at = models_.find(model);
  if (at != models_.end()) return *at->second;
  // Reloads can bring ever new names.
  if (models_.size() >= limits::kMetricModelsMax) return unknown_;
  return *models_.emplace(model, std::make_unique<ModelMetrics>(metrics_, model)).first->second;
}

std::shared_ptr<VersionMetrics> RequestMetrics::Version(const std::string& model, int64_t version) {
  base::MutexLock lock(&mu_);
  VersionEntry& entry = versions_[{model, version}];
  if (entry.metrics == nullptr) {
    entry.metrics = std::make_shared<VersionMetrics>(metrics_, model, base::Cat(version));
  }
  entry.age = ++age_;
  std::shared_ptr<VersionMetrics> metrics = entry.metrics;
  DropOldVersions();
  return metrics;
}

void RequestMetrics::DropOldVersions() {
  std::vector<decltype(versions_)::iterator> ended;
  for (auto at = versions_.begin(); at != versions_.end(); ++at) {
    if (at->second.metrics.use_count() == 1) ended.push_back(at);
  }
  if (ended.size() <= limits::kMetricVersionsKept) return;
  std::ranges::sort(ended, {}, [](const auto& at) { return at->second.age; });
  ended.resize(ended.size() - limits::kMetricVersionsKept);
  for (const auto& at : ended) versions_.erase(at);
}

}  // namespace tensord::obs
