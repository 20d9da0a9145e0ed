// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/checks/checks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

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

// The machine without a GPU, with one of its files as given.
Machine MachineWith(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  Machine machine = testing::MachineOf("cpu_machine");
  const fs::path root = fs::path(::testing::TempDir()) / "doctor_machine";
  fs::remove_all(root);
  fs::copy(machine.root, root, fs::copy_options::recursive);
  std::ofstream(root.string() + path) << text;
  machine.root = root;
  return machine;
}

TEST(Doctor, AProcessorWithoutAvxIsAnError) {
  Machine machine = testing::MachineOf("cpu_machine");
  EXPECT_EQ(Of(CheckCpu(machine), "cpu.avx").level, Level::kOk);
  machine.root = ::testing::TempDir() + "/no_machine";
  EXPECT_EQ(Of(CheckCpu(machine), "cpu.avx").level, Level::kWarning);  // Nothing is known.
  const Finding old = Of(
      CheckCpu(MachineWith("/proc/cpuinfo", "model name : Old\nflags : fpu sse4_2\n")), "cpu.avx");
  EXPECT_EQ(old.level, Level::kError);
  EXPECT_THAT(old.why, HasSubstr("Illegal instruction"));
}

TEST(Doctor, MemoryThatWillBeMissingIsToldWithItsRemedy) {
  struct Case {
    const char* id;
    const char* path;
    const char* text;
    Level level;
    const char* action;
  };
  constexpr char kMeminfo[] = "/proc/meminfo";
  const Case kCases[] = {
      {"memory.size", kMeminfo, "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n", Level::kWarning,
       "2 GiB"},
      {"memory.size", kMeminfo, "MemTotal: 8000000 kB\nMemAvailable: 100000 kB\n", Level::kWarning,
       "--memory_limit_bytes"},
      {"memory.size", kMeminfo, "", Level::kWarning, ""},
      {"memory.swap", kMeminfo, "SwapTotal: 1000000 kB\nSwapFree: 950000 kB\n", Level::kOk, ""},
      {"memory.swap", kMeminfo, "SwapTotal: 1000000 kB\nSwapFree: 500000 kB\n", Level::kWarning,
       "swapoff"},
      {"memory.overcommit", "/proc/sys/vm/overcommit_memory", "2\n", Level::kWarning,
       "vm.overcommit_memory=0"},
      {"memory.max_map_count", "/proc/sys/vm/max_map_count", "4096\n", Level::kWarning,
       "vm.max_map_count=262144"},
      {"memory.huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled",
       "always madvise [never]\n", Level::kInfo, "echo madvise"},
      {"memory.huge_pages", kMeminfo, "HugePages_Total: 1024\nHugepagesize: 2048 kB\n",
       Level::kWarning, "vm.nr_hugepages=0"},
  };
  for (const Case& c : kCases) {
    const Finding finding = Of(CheckMemory(MachineWith(c.path, c.text)), c.id);
    EXPECT_EQ(finding.level, c.level) << c.id << ": " << c.text;
    EXPECT_THAT(finding.action, HasSubstr(c.action)) << c.id << ": " << c.text;
  }
  for (const Finding& finding : CheckMemory(testing::MachineOf("cpu_machine"))) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.id;
  }
}

TEST(Doctor, ALimitThatIsTooLowIsToldWithItsRemedy) {
  struct Case {
    const char* line;  // As the kernel writes it, with its soft limit.
    const char* id;
    const char* action;
  };
  const Case kCases[] = {
      {"Max open files            1024 ", "limits.open_files", "LimitNOFILE="},
      {"Max processes             100 ", "limits.processes", "TasksMax="},
      {"Max address space         4294967296 ", "limits.address_space", "ulimit -v unlimited"},
      {"Max stack size            65536 ", "limits.stack", "ulimit -s 8192"},
      {"Max locked memory         0 ", "limits.locked_memory", "ulimit -l unlimited"},
  };
  for (const Case& c : kCases) {
    const std::string limits = base::Cat(c.line, "unlimited units\n");
    const Findings findings = CheckLimits(MachineWith("/proc/self/limits", limits));
    EXPECT_EQ(Of(findings, c.id).level, Level::kWarning) << c.id;
    EXPECT_THAT(Of(findings, c.id).action, HasSubstr(c.action));
    EXPECT_EQ(std::ranges::count(findings, Level::kInfo, &Finding::level), 4)
        << "the other lines are not there";
  }
  for (const Finding& finding : CheckLimits(testing::MachineOf("cpu_machine"))) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.id;
  }
}

TEST(Doctor, AShortBacklogIsTold) {
  const auto backlog = [](const char* text) {
    return Of(CheckPorts(MachineWith("/proc/sys/net/core/somaxconn", text), {}), "port.backlog");
  };
  EXPECT_EQ(backlog("4096\n").level, Level::kOk);
  EXPECT_EQ(backlog("128\n").level, Level::kInfo);
  EXPECT_THAT(backlog("128\n").action, HasSubstr("somaxconn=4096"));
}

TEST(Doctor, ADiskThatIsNearlyFullOrCannotBeReadIsTold) {
  Machine machine = testing::MachineOf("cpu_machine");
  const auto free = [&] { return Of(CheckDisk(machine, "/models"), "disk.free"); };
  EXPECT_EQ(free().level, Level::kOk);
  machine.disk_space = [](const std::string&) {
    return DiskSpace{.bytes = 100ull << 30, .free = 1ull << 30};
  };
  EXPECT_EQ(free().level, Level::kWarning);
  EXPECT_THAT(free().action, HasSubstr("remove old versions"));
  machine.disk_space = [](const std::string&) { return std::nullopt; };
  EXPECT_EQ(free().level, Level::kWarning);
  EXPECT_THAT(free().seen, HasSubstr("cannot be read"));
}

TEST(Doctor, ASlowClockSourceIsTold) {
  constexpr char kPath[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  for (const char* slow : {"hpet\n", "acpi_pm\n", "jiffies\n", "refined-jiffies\n"}) {
    const Finding source = Of(CheckClock(MachineWith(kPath, slow)), "clock.source");
    EXPECT_EQ(source.level, Level::kWarning) << slow;
    EXPECT_THAT(source.action, HasSubstr("clocksource=tsc"));
  }
  EXPECT_EQ(Of(CheckClock(MachineWith(kPath, "kvm-clock\n")), "clock.source").level, Level::kOk);
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
