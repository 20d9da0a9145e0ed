// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A byte that says what it is, then what a server answers to `tensord train --yield-to` and
// `tensord top`, or a page of metrics, or the JSON of a job's status file. Whatever stands there,
// reading it ends, with a sentence if it is wrong, and no rate is negative.

#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "doctor/parse_json.h"
#include "doctor/top/metrics_page.h"
#include "doctor/top/ranks.h"
#include "train/yield.h"

namespace tensord {
namespace {

void CheckWords(const absl::Status& status) {
  TENSORD_CHECK(status.ok() || !base::Message(status).empty());
}

void TryPage(std::string_view page) {
  const absl::StatusOr<doctor::ServerCounters> server = doctor::ParseMetrics(page);
  CheckWords(server.status());
  if (!server.ok()) return;
  for (const auto& rates : doctor::RatesOf(doctor::ServerCounters(), *server, 1)) {
    TENSORD_CHECK(!rates.name.empty() && !rates.version.empty());
    TENSORD_CHECK(rates.requests >= 0 && rates.errors >= 0 && rates.unserved >= 0);
  }
  // Nothing came between a page and itself.
  for (const auto& rates : doctor::RatesOf(*server, *server, 1)) {
    TENSORD_CHECK(rates.requests == 0 && rates.errors == 0 && rates.p99_microseconds == 0);
  }
}

void TryAnswer(std::string_view answer) {
  const absl::StatusOr<std::string_view> body = train::BodyOf(answer);
  CheckWords(body.status());
  if (!body.ok()) return;
  TENSORD_CHECK(answer.substr(answer.size() - body->size()) == *body);
  TryPage(*body);
}

void TryJson(std::string_view text) {
  const auto value = doctor::ParseJson(text);
  CheckWords(value.status());
  const auto ranks = doctor::ParseRanks(text);
  CheckWords(ranks.status());
  if (ranks.ok()) TENSORD_CHECK(value.ok());
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 3 == 0) tensord::TryPage(text);
  if (data[0] % 3 == 1) tensord::TryAnswer(text);
  if (data[0] % 3 == 2) tensord::TryJson(text);
  return 0;
}
