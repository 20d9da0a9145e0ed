// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::doctor {

// A cumulative histogram as Prometheus writes it: upper bounds and counts up to them.
struct Histogram {
  std::map<double, double> buckets;  // The last bound is infinite.
  double sum = 0;
  double count = 0;

  void Add(const Histogram& other);
  // What came since `before`.
  Histogram Since(const Histogram& before) const;
  double Mean() const { return count > 0 ? sum / count : 0; }
  // Interpolated within its bucket; 0 without values.
  double Quantile(double share) const;
};

// What a tensord's page says of one version of a model, since the server started.
struct ModelCounters {
  double requests = 0;
  double errors = 0;    // Requests whose status is not OK.
  double unserved = 0;  // Refused, expired, shed.
  double queue = 0;     // Now.
  double in_flight = 0;
  Histogram latency;  // Microseconds.
  Histogram batch_rows;
  std::map<std::string, double> stage_microseconds;  // Sums, by stage.
};

struct ServerCounters {
  std::map<std::pair<std::string, std::string>, ModelCounters> models;  // By name and version.
};

// INVALID_ARGUMENT when it is no such page. Reads untrusted text.
absl::StatusOr<ServerCounters> ParseMetrics(std::string_view page);

// One model between two pages.
struct ModelRates {
  std::string name;
  std::string version;
  double requests = 0;  // A second.
  double errors = 0;
  double unserved = 0;
  double queue = 0;
  double in_flight = 0;
  double p50_microseconds = 0;
  double p99_microseconds = 0;
  double batch_rows = 0;   // Mean.
  double queue_share = 0;  // Of a request's time.
  double run_share = 0;
};
std::vector<ModelRates> RatesOf(const ServerCounters& before, const ServerCounters& after,
                                double seconds);

}  // namespace tensord::doctor
