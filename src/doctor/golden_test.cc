// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "doctor/checks/checks.h"
#include "doctor/report.h"
#include "doctor/testing/fake_machine.h"

namespace tensord::doctor {
namespace {

// TENSORD_WRITE_GOLDEN=1 makes the files anew; look at what changes before you commit it.
void ExpectGolden(const std::string& text, const std::string& name) {
  const std::string path = std::string(testing::kGolden) + name;
  if (std::getenv("TENSORD_WRITE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string golden{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, golden) << path;
}

TEST(DoctorGolden, AMachineWithoutAGpu) {
  Machine machine = testing::MachineOf("cpu_machine");
  Findings findings = CheckAll(machine, {.models = {}, .ports = {8500, 8501}});
  std::erase_if(findings, [](const Finding& f) { return f.id == "disk.file_system"; });
  ExpectGolden(ToTable(findings, {}), "cpu_machine.txt");
  EXPECT_EQ(ExitCode(findings), 0);
}

TEST(DoctorGolden, AMachineWithTwoGpusAndAQuota) {
  Machine machine = testing::GpuMachine();
  machine.environment = {
      {"TF_CPP_MIN_LOG_LEVEL", "3"},
      {"TF_XLA_FLAGS", "--tf_xla_auto_jit=2 --tf_xla_cpu_jit"},
      {"CUDA_VISIBLE_DEVICES", "0,2"},
      {"LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs"},
      {"TF_NUM_INTEROP_THREADS", "1"},
      {"TF_CONFIG",
       R"({"cluster": {"worker": ["a:1000", "b"]}, "task": {"type": "worker", "index": 2}})"},
      {"https_proxy", "http://user:secret@proxy:3128"}};
  Findings findings = CheckAll(machine, {.models = {}, .ports = {8500, 40000}});
  std::erase_if(findings, [](const Finding& f) { return f.id == "disk.file_system"; });
  ExpectGolden(ToTable(findings, {}), "gpu_machine.txt");
  ExpectGolden(ToJson(findings), "gpu_machine.json");
  EXPECT_EQ(ExitCode(findings), 2);
}

}  // namespace
}  // namespace tensord::doctor
