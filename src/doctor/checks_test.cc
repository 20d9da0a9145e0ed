// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/checks/checks.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "doctor/report.h"
#include "doctor/runtime_facts.h"
#include "doctor/testing/fake_machine.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

using ::testing::HasSubstr;

// The first finding of that id; an empty one when there is none.
Finding Of(const Findings& findings, const std::string& id) {
  for (const Finding& finding : findings) {
    if (finding.id == id) return finding;
  }
  return {.id = "", .seen = ""};
}

Finding Environment(Machine machine, const std::string& name, const std::string& value) {
  machine.environment[name] = value;
  return Of(CheckEnvironment(machine), "env." + name);
}

Findings TfConfig(const std::string& value) {
  Machine machine = testing::MachineOf("cpu_machine");
  machine.environment["TF_CONFIG"] = value;
  return CheckTfConfig(machine);
}

TEST(Doctor, AProcessorWithoutAvxIsAnError) {
  Machine machine = testing::MachineOf("cpu_machine");
  EXPECT_EQ(Of(CheckCpu(machine), "cpu.avx").level, Level::kOk);
  machine.root = ::testing::TempDir();
  EXPECT_EQ(Of(CheckCpu(machine), "cpu.avx").level, Level::kWarning);  // Nothing is known.
}

TEST(Doctor, ThreadSettingsAreHeldAgainstTheQuota) {
  Machine machine = testing::MachineOf("gpu_machine");
  EXPECT_THAT(Of(CheckThreads(machine), "cpu.budget").seen, HasSubstr("4 of 8 CPUs"));
  machine.environment["TF_NUM_INTRAOP_THREADS"] = "8";
  EXPECT_EQ(Of(CheckThreads(machine), "threads.TF_NUM_INTRAOP_THREADS").level, Level::kWarning);
  machine.environment["TF_NUM_INTRAOP_THREADS"] = "4";
  EXPECT_EQ(Of(CheckThreads(machine), "threads.TF_NUM_INTRAOP_THREADS").level, Level::kOk);
  machine.environment["TF_NUM_INTRAOP_THREADS"] = "four";
  EXPECT_EQ(Of(CheckThreads(machine), "threads.TF_NUM_INTRAOP_THREADS").level, Level::kError);
}

TEST(Doctor, TheSandboxGradeFollowsFromItsLayers) {
  Machine machine = testing::MachineOf("cpu_machine");
  const auto grade = [&] { return Of(CheckSandbox(machine), "sandbox.grade").seen; };
  EXPECT_THAT(grade(), HasSubstr("grade A"));
  machine.user = 1000;
  EXPECT_THAT(grade(), HasSubstr("grade B"));
  machine.landlock_abi = 0;
  EXPECT_THAT(grade(), HasSubstr("grade C"));
  machine.root = ::testing::TempDir();
  EXPECT_THAT(grade(), HasSubstr("grade D"));
}

TEST(Doctor, XlaFlagsThatEndTheProcessAreErrors) {
  const Machine machine = testing::MachineOf("cpu_machine");
  EXPECT_EQ(Environment(machine, "TF_XLA_FLAGS", "--tf_xla_auto_jit=2").level, Level::kOk);
  EXPECT_EQ(Environment(machine, "TF_XLA_FLAGS", "--tf_xla_autojit=2").level, Level::kError);
  EXPECT_EQ(Environment(machine, "TF_XLA_FLAGS", "--xla_dump_to=/tmp").level, Level::kError);
  EXPECT_EQ(Environment(machine, "TF_XLA_FLAGS", "/no/such/file").level, Level::kError);
  EXPECT_EQ(Environment(machine, "XLA_FLAGS", "--tf_xla_auto_jit=2").level, Level::kError);
}

TEST(Doctor, VisibleDevicesAreHeldAgainstTheGpus) {
  const Machine machine = testing::GpuMachine();
  EXPECT_EQ(Environment(machine, "CUDA_VISIBLE_DEVICES", "0,1").level, Level::kOk);
  EXPECT_EQ(Environment(machine, "CUDA_VISIBLE_DEVICES", "GPU-1111").level, Level::kOk);
  EXPECT_EQ(Environment(machine, "CUDA_VISIBLE_DEVICES", "2").level, Level::kError);
  EXPECT_EQ(Environment(machine, "CUDA_VISIBLE_DEVICES", "0,0").level, Level::kError);
  EXPECT_EQ(Environment(machine, "CUDA_VISIBLE_DEVICES", "").level, Level::kWarning);
}

TEST(Doctor, AProxysPasswordIsNotShown) {
  const Finding finding = Environment(testing::MachineOf("cpu_machine"), "https_proxy",
                                      "http://user:secret@proxy:3128");
  EXPECT_THAT(ToJson({finding}), ::testing::Not(HasSubstr("secret")));
}

TEST(Doctor, TfConfigIsCheckedWhole) {
  EXPECT_EQ(Worst(TfConfig(R"({"cluster": {"worker": ["a:1", "b:2"]},
                               "task": {"type": "worker", "index": 1}})")),
            Level::kOk);
  struct Case {
    const char* text;
    const char* words;
  };
  const Case kCases[] = {
      {"{", "no JSON"},
      {"{}", "no cluster"},
      {R"({"cluster": {"worker": "a:1"}})", "not a list"},
      {R"({"cluster": {"worker": ["a"]}})", "not host:port"},
      {R"({"cluster": {"worker": ["a:70000"]}})", "port from 1 to 65535"},
      {R"({"cluster": {"worker": ["http://a:1"]}})", "scheme"},
      {R"({"cluster": {"worker": ["a:1", "a:1"]}})", "twice"},
      {R"({"cluster": {"worker": ["a:1", "localhost:1"]}})", "this machine only"},
      {R"({"cluster": {"chief": ["a:1", "b:1"]}})", "more than one chief"},
      {R"({"cluster": {"worker": ["a:1"]}})", "no task"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}})",
       "not in the cluster"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})",
       "there are 1 of worker"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0.5}})",
       "not a number"},
  };
  for (const Case& c : kCases) {
    const Findings findings = TfConfig(c.text);
    EXPECT_EQ(Worst(findings), Level::kError) << c.text;
    EXPECT_THAT(ToJson(findings), HasSubstr(c.words)) << c.text;
  }
}

TEST(Doctor, ADriverThatIsTooOldForTheBuildIsAnError) {
  Machine machine = testing::GpuMachine();
  EXPECT_EQ(Of(CheckGpus(machine), "gpu.driver").level, Level::kInfo);  // 12.4 under 12.5.
  machine.gpus.cuda_version = 12060;
  EXPECT_EQ(Of(CheckGpus(machine), "gpu.driver").level, Level::kOk);
  machine.gpus.cuda_version = 11080;
  EXPECT_EQ(Of(CheckGpus(machine), "gpu.driver").level, Level::kError);
}

TEST(Doctor, CapabilitiesAreHeldAgainstTheWheelsKernels) {
  Machine machine = testing::GpuMachine();
  const auto level = [&](int capability) {
    machine.gpus.gpus[0].capability = capability;
    return Of(CheckGpus(machine), "gpu.0.capability").level;
  };
  EXPECT_EQ(level(90), Level::kOk);
  EXPECT_EQ(level(86), Level::kOk);  // sm_80's kernels run there.
  EXPECT_EQ(level(52), Level::kError);
  EXPECT_EQ(level(120), Level::kError);
}

TEST(Doctor, AContainerWithoutTheToolkitIsTold) {
  Machine machine = testing::MachineOf("cpu_machine");
  machine.environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  EXPECT_EQ(Of(CheckGpus(machine), "gpu.driver").level, Level::kInfo);
  machine.environment["NVIDIA_VISIBLE_DEVICES"] = "all";
  EXPECT_THAT(Of(CheckGpus(machine), "gpu.driver").action, HasSubstr("nvidia-container-toolkit"));
}

TEST(Doctor, AWheelForCpusBesideGpusIsTold) {
  Machine machine = testing::GpuMachine();
  machine.places.virtual_env = testing::MachineOf("cpu_machine").root + "/venv";
  machine.root = testing::MachineOf("cpu_machine").root;
  EXPECT_EQ(Of(CheckGpus(machine), "gpu.wheel").level, Level::kWarning);
}

TEST(Doctor, AnUnsyncedClockAndAWrongDateAreTold) {
  Machine machine = testing::MachineOf("cpu_machine");
  EXPECT_EQ(Worst(CheckClock(machine)), Level::kOk);
  machine.clock_synchronised = false;
  EXPECT_EQ(Worst(CheckClock(machine)), Level::kInfo);
  machine.wall_time = absl::UnixEpoch();
  EXPECT_EQ(Worst(CheckClock(machine)), Level::kError);
}

TEST(Doctor, ADirectoryWithoutAModelIsAnError) {
  const Findings findings =
      CheckModel(testing::MachineOf("cpu_machine"), {.directory = ::testing::TempDir()});
  EXPECT_THAT(Of(findings, "model.complete").seen, HasSubstr("no saved_model.pb"));
}

TEST(Doctor, WhatIsNoDirectoryIsNamed) {
  for (const std::string directory : {"", "/no/such", "/dev/null"}) {
    const Findings findings =
        CheckModel(testing::MachineOf("cpu_machine"), {.directory = directory});
    EXPECT_THAT(Of(findings, "model.complete").seen,
                HasSubstr(base::Cat("no directory \"", directory, "\"")));
  }
}

TEST(Doctor, ModelsOnANetworkFileSystemAreTold) {
  const Findings findings = CheckDisk(testing::MachineOf("cpu_machine"), "/models/half");
  EXPECT_EQ(Of(findings, "disk.file_system").level, Level::kInfo);
  EXPECT_THAT(Of(findings, "disk.file_system").seen, HasSubstr("nfs4"));
}

TEST(Doctor, TheExitCodeIsTheWorstLevels) {
  EXPECT_EQ(ExitCode({}), 0);
  EXPECT_EQ(ExitCode({{.id = "a", .level = Level::kInfo, .seen = ""}}), 0);
  EXPECT_EQ(ExitCode({{.id = "a", .level = Level::kWarning, .seen = ""}}), 1);
  EXPECT_EQ(ExitCode({{.id = "a", .level = Level::kError, .seen = ""}}), 2);
}

TEST(Doctor, VersionsAreComparedByTheirNumbers) {
  EXPECT_LT(CompareVersions("12.4", "12.10.1"), 0);
  EXPECT_EQ(CompareVersions("12.5.1", "12.5"), 0);
  EXPECT_GT(CompareVersions("13", "12.9"), 0);
  EXPECT_EQ(TestedBuildOf("2.21.0")->cudnn, "9.3");
  EXPECT_EQ(TestedBuildOf("1.15"), nullptr);
}

}  // namespace
}  // namespace tensord::doctor
