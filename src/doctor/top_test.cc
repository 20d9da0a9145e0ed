// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "doctor/parse_json.h"
#include "doctor/testing/fake_machine.h"
#include "doctor/top/view.h"

namespace tensord::doctor {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr char kPage[] = R"(# HELP tensord_requests_total Requests.
# TYPE tensord_requests_total counter
tensord_requests_total{model_name="half",version="3",status="OK"} 100
tensord_requests_total{model_name="half",version="3",status="INTERNAL"} 5
tensord_request_microseconds_bucket{model_name="half",version="3",le="1000"} 50
tensord_request_microseconds_bucket{model_name="half",version="3",le="2000"} 104
tensord_request_microseconds_bucket{model_name="half",version="3",le="+Inf"} 105
tensord_request_microseconds_sum{model_name="half",version="3"} 120000
tensord_request_microseconds_count{model_name="half",version="3"} 105
tensord_batch_rows_sum{model_name="half",version="3"} 400
tensord_batch_rows_count{model_name="half",version="3"} 100
tensord_stage_microseconds_sum{model_name="half",version="3",stage="queue"} 60000
tensord_stage_microseconds_sum{model_name="half",version="3",stage="run"} 20000
tensord_queue_calls{model_name="half",version="3"} 7
tensord_in_flight_runs{model_name="half",version="3"} 2
:tensorflow:core:graph_runs 9
)";

TEST(Top, AServersPageBecomesRates) {
  const auto page = ParseMetrics(kPage);
  ASSERT_TRUE(page.ok()) << page.status();
  const auto rates = RatesOf(ServerCounters(), *page, 10);
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_EQ(rates[0].name, "half");
  EXPECT_DOUBLE_EQ(rates[0].requests, 10.5);
  EXPECT_DOUBLE_EQ(rates[0].errors, 0.5);
  EXPECT_DOUBLE_EQ(rates[0].batch_rows, 4);
  EXPECT_DOUBLE_EQ(rates[0].queue, 7);
  EXPECT_DOUBLE_EQ(rates[0].queue_share, 0.75);
  EXPECT_THAT(rates[0].p50_microseconds, DoubleNear(1046, 1));
  EXPECT_THAT(rates[0].p99_microseconds, DoubleNear(1999, 1));
}

TEST(Top, NothingHappenedBetweenEqualPages) {
  const auto page = ParseMetrics(kPage);
  ASSERT_TRUE(page.ok());
  const auto rates = RatesOf(*page, *page, 1);
  EXPECT_EQ(rates[0].requests, 0);
  EXPECT_EQ(rates[0].p99_microseconds, 0);
  EXPECT_EQ(rates[0].queue, 7);
}

TEST(Top, WhatIsNoPageIsRefused) {
  for (const char* text : {"<html>", "a{b=\"c\" 1", "a{b=\"c", "a b", "a{b} 1"}) {
    EXPECT_FALSE(ParseMetrics(text).ok()) << text;
  }
}

TEST(Top, RanksAreReadFromAStatusFile) {
  const auto ranks = ParseRanks(R"({"ranks": [{"name": "worker/0", "input_wait": 0.85}]})");
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_DOUBLE_EQ((*ranks)[0].input_wait, 0.85);
  EXPECT_DOUBLE_EQ((*ranks)[0].steps_per_second, -1);
  for (const char* text : {"", "{}", R"({"ranks": [{}]})", R"({"ranks": 3})"}) {
    EXPECT_FALSE(ParseRanks(text).ok()) << text;
  }
}

// A machine whose counters a test writes.
class TopOnFiles : public ::testing::Test {
 protected:
  void SetUp() override { machine_.root = ::testing::TempDir() + "/top"; }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = machine_.root + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  Machine machine_;
};

TEST_F(TopOnFiles, RatesComeOfTwoLooks) {
  Write("/proc/stat", "cpu  100 0 100 700 100 0 0 0 0 0\nprocs_running 3\n");
  Write("/proc/net/dev", "head\n lo: 9 0 0 0 0 0 0 0 9 0\neth0: 1000 0 0 0 0 0 0 0 2000 0\n");
  Write("/proc/diskstats", "8 0 sda 1 0 10 0 1 0 20 0 0 0\n8 1 sda1 1 0 10 0 1 0 20 0 0 0\n");
  Write("/sys/block/sda/size", "1");
  Write("/proc/pressure/cpu", "some avg10=12.50 avg60=0.00 avg300=0.00 total=0\n");
  const HostCounters before = ReadHost(machine_, 100);
  EXPECT_EQ(before.running, 3);
  EXPECT_DOUBLE_EQ(before.pressure_cpu, 12.5);
  EXPECT_DOUBLE_EQ(before.pressure_io, -1);
  Write("/proc/stat", "cpu  160 0 110 710 120 0 0 0 0 0\nprocs_running 1\n");
  Write("/proc/net/dev", "eth0: 3000 0 0 0 0 0 0 0 2000 0\n");
  Write("/proc/diskstats", "8 0 sda 1 0 14 0 1 0 20 0 0 0\n8 1 sda1 1 0 99 0 1 0 20 0 0 0\n");
  const HostRates rates = RatesOf(before, ReadHost(machine_, 102));
  EXPECT_DOUBLE_EQ(rates.cpu, 0.7);
  EXPECT_DOUBLE_EQ(rates.cpu_wait, 0.2);
  EXPECT_DOUBLE_EQ(rates.network_in, 1000);
  EXPECT_DOUBLE_EQ(rates.network_out, 0);
  EXPECT_DOUBLE_EQ(rates.disk_read, 1024);
}

TEST(Top, TheViewSaysThatThereIsNoGpu) {
  View view;
  view.gpus = testing::MachineOf("cpu_machine").gpus;
  EXPECT_THAT(ViewText(view, false), HasSubstr("GPU      none: no NVIDIA driver here"));
  EXPECT_TRUE(ParseJson(ViewJson(view)).ok());
}

TEST(Top, TheViewShowsGpusTheirThrottlingAndProcesses) {
  View view;
  view.gpus = testing::GpuMachine().gpus;
  const std::string text = ViewText(view, false);
  EXPECT_THAT(text, HasSubstr("NVIDIA H100 80GB HBM3"));
  EXPECT_THAT(text, HasSubstr("698 W of 700, 88 C, 1200 MHz"));
  EXPECT_THAT(text, HasSubstr("slowed down: power cap, heat (software)"));
  EXPECT_THAT(text, HasSubstr("process 5152: memory not told"));
  const auto json = ParseJson(ViewJson(view));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(Member(*json, "gpus")->list_value().values_size(), 2);
}

}  // namespace
}  // namespace tensord::doctor
