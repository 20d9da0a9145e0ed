// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/status_macros.h"
#include "base/text.h"
#include "doctor/advise/observation.h"
#include "doctor/nvml/abi.h"
#include "doctor/parse_json.h"
#include "doctor/words.h"

// Views as `tensord top --json` writes them, read again.
namespace tensord::doctor {
namespace {

using google::protobuf::Value;

uint64_t Count(const Value& value, const std::string& name) {
  const double number = NumberIn(value, name, 0);
  return number > 0 && number < 1e18 ? static_cast<uint64_t>(number) : 0;
}

int Small(const Value& value, const std::string& name, int otherwise) {
  const double number = NumberIn(value, name, otherwise);
  return number >= 0 && number < 1e9 ? static_cast<int>(number) : otherwise;
}

void ReadHostOf(const Value& host, View* view) {
  view->cpus = Small(host, "cpus", 1);
  view->rates.cpu = NumberIn(host, "cpu_share", 0);
  view->rates.cpu_wait = NumberIn(host, "cpu_wait_share", 0);
  view->rates.network_in = NumberIn(host, "network_in_bytes_per_second", 0);
  view->rates.network_out = NumberIn(host, "network_out_bytes_per_second", 0);
  view->host.running = Small(host, "running", 0);
  view->host.memory_bytes = Count(host, "memory_bytes");
  view->host.memory_available = Count(host, "memory_available_bytes");
  view->host.swap_used = Count(host, "swap_used_bytes");
  view->host.pressure_cpu = NumberIn(host, "pressure_cpu_percent", -1);
  view->host.pressure_memory = NumberIn(host, "pressure_memory_percent", -1);
  view->host.pressure_io = NumberIn(host, "pressure_io_percent", -1);
}

nvml::Gpu GpuOf(const Value& value) {
  nvml::Gpu gpu;
  gpu.name = TextIn(value, "name");
  const int utilisation = Small(value, "utilisation_percent", -1);
  if (utilisation >= 0) gpu.utilisation = utilisation;
  gpu.memory_bytes = Count(value, "memory_bytes");
  gpu.memory_used = Count(value, "memory_used_bytes");
  const std::string slow = TextIn(value, "slowed_down_by");
  uint64_t reasons = 0;
  if (slow.find("power") != std::string::npos) reasons |= nvml::kReasonPowerCap;
  if (slow.find("heat") != std::string::npos) reasons |= nvml::kReasonSoftwareThermal;
  if (slow.find("hardware slowdown") != std::string::npos) reasons |= nvml::kReasonHardwareSlowdown;
  gpu.clock_reasons = reasons;
  return gpu;
}

ModelRates ModelOf(const Value& value) {
  ModelRates model;
  model.name = TextIn(value, "model");
  model.version = TextIn(value, "version");
  model.requests = NumberIn(value, "requests_per_second", 0);
  model.errors = NumberIn(value, "errors_per_second", 0);
  model.unserved = NumberIn(value, "unserved_per_second", 0);
  model.queue = NumberIn(value, "queue", 0);
  model.in_flight = NumberIn(value, "in_flight_runs", 0);
  model.batch_rows = NumberIn(value, "batch_rows_mean", 0);
  model.p50_microseconds = NumberIn(value, "p50_us", 0);
  model.p99_microseconds = NumberIn(value, "p99_us", 0);
  model.queue_share = NumberIn(value, "queue_share", 0);
  model.run_share = NumberIn(value, "run_share", 0);
  return model;
}

Rank RankOf(const Value& value) {
  return {.name = TextIn(value, "name"),
          .step = NumberIn(value, "step", -1),
          .steps_per_second = NumberIn(value, "steps_per_second", -1),
          .input_wait = NumberIn(value, "input_wait", -1),
          .input_stage = TextIn(value, "input_stage"),
          .input_stage_share = NumberIn(value, "input_stage_share", -1),
          .all_reduce = NumberIn(value, "all_reduce", -1),
          .all_reduce_bytes = NumberIn(value, "all_reduce_bytes", -1)};
}

template <typename T, typename Function>
void ReadList(const Value& value, const std::string& name, Function read, std::vector<T>* out) {
  const Value* list = Member(value, name);
  if (list == nullptr) return;
  for (const Value& item : list->list_value().values()) out->push_back(read(item));
}

absl::StatusOr<View> ParseView(std::string_view line) {
  ASSIGN_OR_RETURN(const Value value, ParseJson(line));
  const Value* host = Member(value, "host");
  if (host == nullptr) return absl::InvalidArgumentError("there is no \"host\"");
  View view;
  view.rates.seconds = NumberIn(value, "seconds", 0);
  ReadHostOf(*host, &view);
  ReadList(value, "gpus", GpuOf, &view.gpus.gpus);
  ReadList(value, "models", ModelOf, &view.models);
  ReadList(value, "ranks", RankOf, &view.ranks);
  return view;
}

}  // namespace

absl::StatusOr<std::vector<View>> ParseViews(std::string_view lines) {
  std::vector<View> views;
  for (const std::string_view line : Split(lines, "\n")) {
    absl::StatusOr<View> view = ParseView(line);
    if (!view.ok()) {
      return base::WithContext(view.status(), base::Cat("line ", views.size() + 1, ": "));
    }
    views.push_back(*std::move(view));
  }
  if (views.empty()) return absl::InvalidArgumentError("nothing was recorded");
  return views;
}

}  // namespace tensord::doctor
