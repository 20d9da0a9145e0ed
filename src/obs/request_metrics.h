// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "obs/lazy.h"
#include "obs/method.h"
#include "obs/metrics.h"
#include "obs/run_metrics.h"

// The series that requests touch, each looked up once. A series appears with its first event.
namespace tensord::obs {

constexpr size_t kStatusCodes = 17;

// How one request ended.
struct RequestFacts {
  Method method = Method::kOther;
  Transport transport = Transport::kGrpc;
  absl::StatusCode code = absl::StatusCode::kOk;
  absl::Duration total = {};
  // For a request that got an answer.
  std::optional<std::array<absl::Duration, kStages>> stages = {};
  std::optional<absl::Duration> run_time = {};  // Inside the runtime; none when no run answered.
  int64_t rows = 0;
  bool rest_api = false;  // Asked for something under /v1/, whether that exists or not.
};

// What the series of requests say together.
struct Totals {
  uint64_t count = 0;
  double microseconds = 0;

  void Add(const Totals& more) {
    count += more.count;
    microseconds += more.microseconds;
  }
};

// Of the inference calls of one version.
struct InferenceTotals {
  Totals succeeded;
  Totals failed;
  std::array<Totals, kStages> stages;
  uint64_t runs = 0;
  uint64_t rows = 0;  // That ran.
};

// What ended under one model, version and signature; version and signature are empty for requests
// that were matched with none.
// Threads: safe from any. Its series leave the page with it.
class SignatureMetrics {
 public:
  SignatureMetrics(Metrics* metrics, std::string model, std::string version, std::string signature);
  ~SignatureMetrics();
  SignatureMetrics(const SignatureMetrics&) = delete;
  SignatureMetrics& operator=(const SignatureMetrics&) = delete;

  void Count(const RequestFacts& facts);
  void AddTo(InferenceTotals* totals) const;

 private:
  struct Cell {
    Lazy<prometheus::Counter> requests;
    Lazy<prometheus::Histogram> time;
  };
  using Cells = std::array<Cell, kStatusCodes>;  // By status code.

  Cells& CellsOf(Method method, Transport transport);

  Metrics* const metrics_;
  const std::string model_;
  const std::string version_;
  const std::string signature_;
  base::Mutex mu_;  // Around making cells.
  std::array<std::atomic<Cells*>, kMethods * kTransports> cells_{};
};

// What belongs to one version, and its signatures.
// Threads: safe from any. Its series leave the page with it.
class VersionMetrics {
 public:
  VersionMetrics(Metrics* metrics, std::string model, std::string version);
  ~VersionMetrics();
  VersionMetrics(const VersionMetrics&) = delete;
  VersionMetrics& operator=(const VersionMetrics&) = delete;

  // Lifetime: the version's.
  SignatureMetrics* Signature(const std::string& name);

  void CountStages(Transport transport, const std::array<absl::Duration, kStages>& stages);
  void CountRun(int64_t rows);
  InferenceTotals Total();

 private:
  Metrics* const metrics_;
  const std::string model_;
  const std::string version_;
  std::array<std::array<Lazy<prometheus::Histogram>, kStages>, kTransports> stages_;
  Lazy<prometheus::Histogram> batch_rows_;
  base::Mutex mu_;
  std::map<std::string, std::unique_ptr<SignatureMetrics>> signatures_ ABSL_GUARDED_BY(mu_);
};

// The original's series of one model, and ours for requests that found no version of it.
// Threads: safe from any.
class ModelMetrics {
 public:
  ModelMetrics(Metrics* metrics, std::string model);

  // By the original's rules of what counts where.
  void Count(const RequestFacts& facts);
  // A sampled request that was logged, or why it was not.
  void CountLogged(absl::StatusCode code);
  VersionMetrics& versionless() { return versionless_; }

 private:
  void CountLatency(const RequestFacts& facts);
  void CountExamples(int64_t rows);

  Metrics* const metrics_;
  const std::string model_;
  std::array<Lazy<prometheus::Counter>, kStatusCodes> request_count_;
  std::array<Lazy<prometheus::Histogram>, kMethods * kTransports> latency_;
  std::array<Lazy<prometheus::Histogram>, kMethods> runtime_latency_;
  Lazy<prometheus::Histogram> example_counts_;
  Lazy<prometheus::Counter> example_count_total_;
  VersionMetrics versionless_;
};

// All of them. The number of models and of versions is bounded, so that neither clients nor years
// of new versions grow the page without end.
// Threads: safe from any. Lifetime: `metrics` outlives it, and it outlives what it gives.
class RequestMetrics {
 public:
  explicit RequestMetrics(Metrics* metrics);

  // REQUIRES: `model` is configured: any name from outside would make series.
  ModelMetrics& Model(const std::string& model);
  // For models that are not configured, and requests that name none.
  ModelMetrics& unknown() { return unknown_; }
  // A version that nobody holds any longer stays on the page until newer ones push it out.
  std::shared_ptr<VersionMetrics> Version(const std::string& model, int64_t version);
  RunMetrics& runs() { return runs_; }
  LoadMetrics& loads() { return loads_; }

 private:
  struct VersionEntry {
    std::shared_ptr<VersionMetrics> metrics;
    uint64_t age = 0;
  };

  void DropOldVersions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Metrics* const metrics_;
  ModelMetrics unknown_;
  RunMetrics runs_;
  LoadMetrics loads_;
  base::Mutex mu_;
  std::map<std::string, std::unique_ptr<ModelMetrics>> models_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<std::string, int64_t>, VersionEntry> versions_ ABSL_GUARDED_BY(mu_);
  uint64_t age_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tensord::obs
