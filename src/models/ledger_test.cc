// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/text.h"

namespace tensord::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kMiB = 1 << 20;

TEST(Ledger, EstimatesAFifthMoreThanTheFilesAndWhatAnyWorkerTakes) {
  EXPECT_EQ(Ledger::Estimate(100 * kMiB), 120 * kMiB + limits::kWorkerBaseBytes);
  EXPECT_EQ(Ledger::Estimate(0), limits::kWorkerBaseBytes);
}

struct Row {
  std::string name;
  uint64_t server_max;
  Ledger::Request request;
  std::string whose;  // Empty: it fits.
};

class LedgerTest : public testing::TestWithParam<Row> {};

TEST_P(LedgerTest, RefusesWhatDoesNotFit) {
  const Row& row = GetParam();
  Ledger ledger(row.server_max);
  ledger.Add("m", 100 * kMiB);
  ledger.Add("other", 200 * kMiB);
  const absl::Status status = ledger.Admit(row.request);
  if (row.whose.empty()) {
    EXPECT_TRUE(status.ok()) << status;
    return;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(base::Message(status)),
              AllOf(StartsWith("Insufficient resources to load servable {name: m version: 2}"),
                    HasSubstr(row.whose), HasSubstr("50.00 MiB")));
}

Ledger::Request Ask(uint64_t worker_max, uint64_t model_max) {
  return {.model = "m",
          .version = 2,
          .bytes = 50 * kMiB,
          .worker_bytes_max = worker_max,
          .model_bytes_max = model_max};
}

INSTANTIATE_TEST_SUITE_P(
    Rows, LedgerTest,
    testing::Values(Row{"NoLimits", 0, Ask(0, 0), ""},
                    Row{"JustFitsTheServer", 350 * kMiB, Ask(0, 0), ""},
                    Row{"OneByteTooManyForTheServer", 350 * kMiB - 1, Ask(0, 0), "300.00 MiB"},
                    Row{"TheServerIsOverItsLimitAlready", 10, Ask(0, 0), "all models"},
                    Row{"JustFitsTheModel", 0, Ask(0, 150 * kMiB), ""},
                    Row{"TooMuchForTheModel", 0, Ask(0, 149 * kMiB), "this model"},
                    Row{"JustFitsTheWorker", 0, Ask(50 * kMiB, 0), ""},
                    Row{"TooMuchForAWorker", 0, Ask(49 * kMiB, 0), "one worker"}),
    [](const auto& row) { return row.param.name; });

TEST(Ledger, WritesBytesForPeople) {
  EXPECT_EQ(BytesText(12), "12 bytes");
  EXPECT_EQ(BytesText(1536), "1.50 KiB");
  EXPECT_EQ(BytesText(5ull << 30), "5.00 GiB");
}

}  // namespace
}  // namespace tensord::models
