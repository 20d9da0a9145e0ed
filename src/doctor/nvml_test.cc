// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "doctor/nvml/gpus.h"
#include "doctor/testing/fake_machine.h"

// The library under test is the fake one, by the real dlopen and the real names and layouts.
namespace tensord::doctor::nvml {
namespace {

using ::testing::HasSubstr;

std::string Scenario(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/nvml.txt";
  std::ofstream(path) << text;
  return path;
}

TEST(Nvml, ReadsAllThatTheBoardTells) {
  const Gpus all = testing::GpusOf(std::string(testing::kGolden) + "gpu_machine/nvml.txt");
  EXPECT_EQ(all.problem, "");
  EXPECT_EQ(all.driver_version, "550.54.15");
  EXPECT_EQ(all.cuda_version, 12040);
  ASSERT_EQ(all.gpus.size(), 2u);
  const Gpu& gpu = all.gpus[0];
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.bus_id, "00000000:3B:00.0");
  EXPECT_EQ(gpu.utilisation, 35);
  EXPECT_EQ(gpu.memory_bytes, 85899345920u);
  EXPECT_EQ(gpu.memory_used, 84000000000u);
  EXPECT_DOUBLE_EQ(*gpu.watts, 698);
  EXPECT_EQ(gpu.capability, 90);
  EXPECT_EQ(ThrottleWords(*gpu.clock_reasons), "power cap, heat (software)");
  ASSERT_EQ(gpu.processes.size(), 1u);
  EXPECT_EQ(gpu.processes[0].pid, 4242u);
  EXPECT_EQ(gpu.processes[0].bytes, 83000000000u);
}

TEST(Nvml, WhatABoardDoesNotTellIsEmpty) {
  const Gpus all =
      testing::GpusOf(Scenario("driver 550.1\ngpu\nname Small\nprocess 7 "
                               "18446744073709551615\n"));
  ASSERT_EQ(all.gpus.size(), 1u);
  EXPECT_EQ(all.gpus[0].utilisation, std::nullopt);
  EXPECT_EQ(all.gpus[0].mig, std::nullopt);
  EXPECT_EQ(all.gpus[0].clock_reasons, std::nullopt);
  EXPECT_EQ(all.gpus[0].processes[0].bytes, std::nullopt);
}

TEST(Nvml, ADriverThatDoesNotStartSaysWhy) {
  EXPECT_THAT(testing::GpusOf(Scenario("init 9\n")).problem, HasSubstr("driver is not loaded"));
  EXPECT_THAT(testing::GpusOf(Scenario("init 18\n")).problem, HasSubstr("different versions"));
  EXPECT_THAT(testing::GpusOf(Scenario("driver 1\n")).problem, HasSubstr("there is no GPU"));
}

}  // namespace
}  // namespace tensord::doctor::nvml
