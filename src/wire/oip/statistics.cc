// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/statistics.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "tensord/open_inference.pb.h"
#include "wire/oip/json_text.h"

namespace tensord::wire {
namespace {

void Set(const OipDuration& duration, inference::StatisticDuration* message) {
  message->set_count(duration.count);
  message->set_ns(duration.nanoseconds);
}

void PrintNumber(std::string_view name, uint64_t number, JsonText* json) {
  json->Name(name);
  json->Number(static_cast<int64_t>(std::min<uint64_t>(number, INT64_MAX)));
}

void PrintDuration(std::string_view name, const OipDuration& duration, JsonText* json) {
  json->Name(name);
  json->Open('{');
  PrintNumber("count", duration.count, json);
  PrintNumber("ns", duration.nanoseconds, json);
  json->Close('}');
}

void PrintVersion(const OipStatistics& version, JsonText* json) {
  json->Open('{');
  json->Name("name");
  json->Text(version.name);
  json->Name("version");
  json->Text(base::Cat(version.version));
  PrintNumber("inference_count", version.rows, json);
  PrintNumber("execution_count", version.runs, json);
  json->Name("inference_stats");
  json->Open('{');
  PrintDuration("success", version.success, json);
  PrintDuration("fail", version.fail, json);
  PrintDuration("queue", version.queue, json);
  PrintDuration("compute_input", version.compute_input, json);
  PrintDuration("compute_infer", version.compute_infer, json);
  PrintDuration("compute_output", version.compute_output, json);
  json->Close('}');
  json->Name("batch_stats");
  json->Open('[');
  json->Close(']');
  json->Close('}');
}

}  // namespace

std::string EncodeOipStatistics(std::span<const OipStatistics> versions) {
  inference::ModelStatisticsResponse message;
  for (const OipStatistics& version : versions) {
    inference::ModelStatistics* const model = message.add_model_stats();
    model->set_name(base::ToUtf8(version.name));
    model->set_version(base::Cat(version.version));
    model->set_inference_count(version.rows);
    model->set_execution_count(version.runs);
    inference::InferStatistics* const stats = model->mutable_inference_stats();
    Set(version.success, stats->mutable_success());
    Set(version.fail, stats->mutable_fail());
    Set(version.queue, stats->mutable_queue());
    Set(version.compute_input, stats->mutable_compute_input());
    Set(version.compute_infer, stats->mutable_compute_infer());
    Set(version.compute_output, stats->mutable_compute_output());
  }
  return message.SerializeAsString();
}

std::string PrintOipStatistics(std::span<const OipStatistics> versions) {
  JsonText json;
  json.Open('{');
  json.Name("model_stats");
  json.Open('[');
  for (const OipStatistics& version : versions) PrintVersion(version, &json);
  json.Close(']');
  json.Close('}');
  return json.Take();
}

}  // namespace tensord::wire
