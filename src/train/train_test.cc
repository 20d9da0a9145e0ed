// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/small_file.h"
#include "base/text.h"
#include "train/address.h"
#include "train/cgroup.h"
#include "train/cluster_spec.h"
#include "train/codec.h"
#include "train/environment.h"
#include "train/failure.h"
#include "train/log_folder.h"
#include "train/machine.h"
#include "train/output.h"
#include "train/ports.h"
#include "train/preflight.h"
#include "train/processes.h"
#include "train/publish.h"
#include "train/schedulers.h"
#include "train/status.h"
#include "train/watch.h"
#include "train/yield.h"

namespace tensord::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

// ---- Who is who ---------------------------------------------------------------------------------

TEST(TfConfig, NamesAllWorkersAndThisOne) {
  const auto tasks = *TasksOf(Mode::kMultiWorker, 2, 0);
  EXPECT_EQ(TfConfig(Mode::kMultiWorker, tasks, {"a:1", "b:2"}, 1),
            R"({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}})");
}

TEST(TfConfig, WithParameterServersTheChiefIsFirstAndTheServersAreLast) {
  const auto tasks = *TasksOf(Mode::kParameterServer, 4, 1);
  EXPECT_EQ(TfConfig(Mode::kParameterServer, tasks, {"a:1", "a:2", "a:3", "a:4"}, 3),
            R"({"cluster": {"chief": ["a:1"], "worker": ["a:2", "a:3"], "ps": ["a:4"]}, )"
            R"("task": {"type": "ps", "index": 0}})");
  EXPECT_FALSE(TasksOf(Mode::kParameterServer, 2, 1).ok());
}

TEST(TfConfig, IsLeftOutWhereThereIsNoCluster) {
  for (const Mode mode : {Mode::kMirrored, Mode::kLocal, Mode::kMultiWorker}) {
    EXPECT_EQ(TfConfig(mode, *TasksOf(mode, 1, 0), {"a:1"}, 0), "");
  }
  EXPECT_EQ(TfConfig(Mode::kLocal, *TasksOf(Mode::kLocal, 2, 0), {"a:1", "a:2"}, 0), "");
}

// ---- Environment --------------------------------------------------------------------------------

TEST(RankVariables, SayWhereTheRankSits) {
  const Seat seat{.rank = 3,
                  .ranks = 4,
                  .local_rank = 1,
                  .local_ranks = 2,
                  .node = 1,
                  .nodes = 2,
                  .restarts = 5,
                  .run_id = "r",
                  .task = {"worker", 3},
                  .cpus = 8};
  const auto variables = RankVariables(seat, {.inject = false}, {});
  for (const char* wanted :
       {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "NODE_RANK=1",
        "RESTART_COUNT=5", "RUN_ID=r", "TF_NUM_INTRAOP_THREADS=4", "OMP_NUM_THREADS=4"}) {
    EXPECT_THAT(variables, Contains(wanted));
  }
}

TEST(RankVariables, ThereAreAlwaysTwoThreadsBetweenOpsAndFourWithParameterServers) {
  Seat seat{.cpus = 1};
  EXPECT_THAT(RankVariables(seat, {}, {}), Contains("TF_NUM_INTEROP_THREADS=2"));
  seat.mode = Mode::kParameterServer;
  EXPECT_THAT(RankVariables(seat, {}, {}), Contains("TF_NUM_INTEROP_THREADS=4"));
}

TEST(RankVariables, WhatTheUserSetForSpeedStays) {
  const std::vector<std::string> inherited = {"OMP_NUM_THREADS=7", "PYTHONPATH=/mine"};
  const auto variables = RankVariables(Seat{.cpus = 4}, {.folder = "/help"}, inherited);
  EXPECT_THAT(variables, Not(Contains(HasSubstr("OMP_NUM_THREADS"))));
  EXPECT_THAT(variables, Contains("PYTHONPATH=/help:/mine"));
  EXPECT_THAT(Merge(inherited, variables), Contains("OMP_NUM_THREADS=7"));
}

TEST(RankVariables, GpusAreSharedOutAndGrowTheirMemory) {
  EXPECT_THAT(GpusOfRank({"0", "1", "2", "3"}, 1, 2), ElementsAre("2", "3"));
  EXPECT_THAT(GpusOfRank({"0"}, 1, 2), ElementsAre("0"));
  EXPECT_THAT(GpusOfRank({}, 0, 2), IsEmpty());
  const auto variables = RankVariables(Seat{.gpus = {"2", "3"}}, {}, {});
  EXPECT_THAT(variables, Contains("CUDA_VISIBLE_DEVICES=2,3"));
  EXPECT_THAT(variables, Contains("TF_FORCE_GPU_ALLOW_GROWTH=true"));
}

TEST(RankVariables, APinnedRankHasNoMoreThreadsThanCpus) {
  const Seat seat{.local_ranks = 2, .cpus = 16, .pinned_cpus = 3};
  EXPECT_THAT(RankVariables(seat, {}, {}), Contains("TF_NUM_INTRAOP_THREADS=3"));
}

TEST(RankVariables, NcclUsesTheInterfaceToTheOtherMachines) {
  const Seat seat{.gpus = {"0"}, .interface = "eth1"};
  EXPECT_THAT(RankVariables(seat, {}, {}), Contains("NCCL_SOCKET_IFNAME==eth1"));
  EXPECT_THAT(RankVariables(seat, {}, {"NCCL_SOCKET_IFNAME=ib0"}),
              Not(Contains(HasSubstr("NCCL_SOCKET_IFNAME"))));
  EXPECT_THAT(RankVariables(Seat{.interface = "eth1"}, {}, {}),
              Not(Contains(HasSubstr("NCCL_SOCKET_IFNAME"))))
      << "without GPUs there is no NCCL";
}

TEST(InterfaceTo, IsNoneForLoopbackAndForNamesThatDoNotResolve) {
  EXPECT_EQ(InterfaceTo("127.0.0.1"), "");
  EXPECT_EQ(InterfaceTo("no-such-host.invalid"), "");
}

TEST(Masked, HidesWhatSoundsSecret) {
  EXPECT_EQ(Masked("WANDB_API_KEY=abc"), "WANDB_API_KEY=***");
  EXPECT_EQ(Masked("db_password=abc"), "db_password=***");
  EXPECT_EQ(Masked("https_proxy=http://me:p@ss@proxy:3128/a@b"),
            "https_proxy=http://***@proxy:3128/a@b");
  EXPECT_EQ(Masked("PAGE=http://host/a@b"), "PAGE=http://host/a@b");
  EXPECT_EQ(Masked("RANK=1"), "RANK=1");
}

TEST(FindGpus, ReadsTheDriverAndTheNumaNode) {
  const std::string root = testing::TempDir() + "/gpus";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root + "/proc/driver/nvidia/gpus/0000:01:00.0");
  std::filesystem::create_directories(root + "/proc/driver/nvidia/gpus/0000:41:00.0");
  std::filesystem::create_directories(root + "/sys/bus/pci/devices/0000:41:00.0");
  std::ofstream(root + "/sys/bus/pci/devices/0000:41:00.0/local_cpulist") << "4-5,7\n";
  const GpuList all = FindGpus({}, root);
  EXPECT_THAT(all.visible, ElementsAre("0", "1"));
  EXPECT_THAT(all.cpus.at("1"), ElementsAre(4, 5, 7));
  EXPECT_THAT(FindGpus({"CUDA_VISIBLE_DEVICES=1"}, root).visible, ElementsAre("1"));
  EXPECT_THAT(FindGpus({"CUDA_VISIBLE_DEVICES=-1"}, root).visible, IsEmpty());
}

// ---- Words and causes ---------------------------------------------------------------------------

RankWords Words(const std::vector<std::string>& lines) {
  RankWords words;
  int64_t ms = 0;
  for (const std::string& line : lines) words.Add(line, ms += 10);
  return words;
}

TEST(RankWords, KeepTheTracebackAndTellOwnErrorsFromEchoes) {
  const RankWords own =
      Words({"step 1", "Traceback (most recent call last):", "  File \"a.py\", line 1",
             "ValueError: bad", "goodbye"});
  EXPECT_EQ(own.trouble(), Trouble::kOwn);
  EXPECT_EQ(own.trouble_ms(), 20);
  EXPECT_THAT(own.Words(), HasSubstr("ValueError: bad"));
  EXPECT_THAT(own.Words(), Not(HasSubstr("step 1")));
  const RankWords echo =
      Words({"Traceback (most recent call last):", "  File \"a.py\", line 1",
             "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted "
             "by: failed to connect"});
  EXPECT_EQ(echo.trouble(), Trouble::kEcho);
}

TEST(RankWords, WithoutATracebackTheLastLinesCount) {
  EXPECT_EQ(Words({"one", "two"}).Words(), "one\ntwo");
  EXPECT_EQ(Words({"one"}).trouble(), Trouble::kNone);
}

TEST(RankWords, KnownMessagesBringAdvice) {
  EXPECT_THAT(Words({"OSError: [Errno 28] No space left on device"}).advice(),
              HasSubstr("disk is full"));
  EXPECT_TRUE(Words({"UnknownError: Could not start gRPC server"}).port_stolen());
}

TEST(RankWords, AGraphsErrorIsToldWithItsReasonWhichMayBeAnEcho) {
  const std::vector<std::string> begin = {
      "Traceback (most recent call last):",
      "  File \"a.py\", line 1",
      "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:",
      "",
      "Detected at node cond defined at (most recent call last):",
      "<stack traces unavailable>"};
  std::vector<std::string> lines = begin;
  lines.insert(lines.end(), {"", "Incompatible shapes: [2] vs. [3]"});
  EXPECT_THAT(Words(lines).Words(), HasSubstr("Incompatible shapes"));
  EXPECT_EQ(Words(lines).trouble(), Trouble::kOwn);
  lines = begin;
  lines.push_back("Collective ops is aborted by: failed to connect to all addresses");
  EXPECT_EQ(Words(lines).trouble(), Trouble::kEcho);
}

TEST(RankWords, WhatComesAfterTheReasonOfAGraphsErrorDecidesNothing) {
  const std::vector<std::string> lines = {
      "Traceback (most recent call last):",
      "  File \"a.py\", line 1",
      "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:",
      "",
      "Detected at node 'cond' defined at (most recent call last):",
      "    File \"a.py\", line 1, in <module>",
      "Node: 'cond'",
      "2026-12-01 00:00:00.1: W tensorflow/core/x.cc:1] Connection reset by peer",
      "2 root error(s) found.",
      "  (0) INVALID_ARGUMENT: Incompatible shapes: [2] vs. [3]",
      "\t [[{{node cond}}]]",
      "Connection reset by peer",
      "",
      "later output"};
  EXPECT_EQ(Words(lines).trouble(), Trouble::kOwn);
  EXPECT_THAT(Words(lines).Words(), HasSubstr("Incompatible shapes"));
  EXPECT_THAT(Words(lines).Words(), Not(HasSubstr("later output")));
}

TEST(RankWords, ErrorsOfNcclBringTheirOwnAdviceAndALostPeerIsAnEcho) {
  const std::string failed = "NCCL operation ncclGroupEnd() failed: ";
  EXPECT_THAT(Words({failed + "unhandled cuda error"}).advice(), HasSubstr("nvidia-smi"));
  EXPECT_THAT(Words({"ncclInvalidUsage"}).advice(), HasSubstr("a GPU for each rank"));
  const std::string lost = failed + "remote process exited or there was a network error";
  EXPECT_THAT(Words({lost}).advice(), HasSubstr("failed first"));
  EXPECT_TRUE(IsEcho(lost));
}

TEST(RankWords, TheBannerOfNcclIsNoAdvice) {
  EXPECT_EQ(Words({"NCCL version 2.25.1+cuda12.5", "ValueError: bad"}).advice(), "");
  EXPECT_THAT(Words({"host:1:2 [0] transport/net.cc:1 NCCL WARN Connect failed"}).advice(),
              HasSubstr("NCCL_DEBUG"));
}

TEST(FindCause, AnErrorThatAScriptCaughtIsNotWhyAnotherRankLeft) {
  const RankEnd caught{
      .rank = 0, .signal = SIGTERM, .by_us = true, .since_ms = 1, .trouble = Trouble::kOwn};
  EXPECT_EQ(FindCause({caught, {.rank = 1, .code = 7, .since_ms = 9}}), 1);
  EXPECT_EQ(FindCause({caught, {.rank = 1, .signal = SIGSEGV, .since_ms = 9}}), 1);
  // But if the others only left because of it, it was not caught.
  EXPECT_EQ(FindCause({caught, {.rank = 1, .code = 1, .since_ms = 9, .trouble = Trouble::kEcho}}),
            0);
  EXPECT_EQ(FindCause({caught, {.rank = 1, .signal = SIGABRT, .since_ms = 9}}), 0);
}

TEST(FindCause, OwnErrorsAndSignalsComeBeforeEchoesEvenWhenLater) {
  EXPECT_EQ(FindCause({{.rank = 0, .code = 1, .since_ms = 5, .trouble = Trouble::kEcho},
                       {.rank = 1, .signal = SIGKILL, .since_ms = 9}}),
            1);
  EXPECT_EQ(FindCause({{.rank = 0, .signal = SIGKILL, .by_us = true, .since_ms = 1},
                       {.rank = 1, .code = 1, .since_ms = 9, .trouble = Trouble::kOwn},
                       {.rank = 2, .code = 1, .since_ms = 8, .trouble = Trouble::kOwn}}),
            2);
  EXPECT_EQ(FindCause({{.rank = 0}, {.rank = 1}}), -1);
}

// ---- Logs ---------------------------------------------------------------------------------------

TEST(CheckRunId, TakesWhatMayStandInTheNameOfAFile) {
  for (const char* id : {"r", "2026-12-01_a.b", "_x"}) EXPECT_TRUE(CheckRunId(id).ok()) << id;
  for (const char* id : {"", ".", "../../x", "a/b", ".hidden", "-x", "a b", "\xc3\xa4"}) {
    EXPECT_FALSE(CheckRunId(id).ok()) << id;
  }
  EXPECT_FALSE(CheckRunId(std::string(65, 'a')).ok());
}

TEST(MakeOwnFolder, TakesNoneThatAnotherHasPrepared) {
  const std::string root = testing::TempDir() + "/log_folders";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  EXPECT_TRUE(MakeOwnFolder(root + "/new").ok());
  EXPECT_EQ(std::filesystem::status(root + "/new").permissions(),
            std::filesystem::perms::owner_all);
  EXPECT_TRUE(MakeOwnFolder(root + "/new").ok()) << "an earlier start of the same run";
  std::filesystem::create_directory_symlink(root + "/new", root + "/link");
  EXPECT_THAT(std::string(MakeOwnFolder(root + "/link").message()), HasSubstr("--log-dir"));
  std::filesystem::create_directory(root + "/open");
  std::filesystem::permissions(root + "/open", std::filesystem::perms::all);
  EXPECT_FALSE(MakeOwnFolder(root + "/open").ok());
  EXPECT_THAT(std::string(MakeOwnFolder(root + "/no/such").message()),
              HasSubstr("No such file or directory"));
  if (geteuid() == 0) {
    std::filesystem::create_directory(root + "/theirs");
    ASSERT_EQ(chown((root + "/theirs").c_str(), 65534, 65534), 0);
    EXPECT_FALSE(MakeOwnFolder(root + "/theirs").ok());
  }
}

TEST(OpenToAppend, FollowsNoLinkAndIsNotLeftToChildren) {
  const std::string root = testing::TempDir() + "/log_files";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  const auto log = OpenToAppend(root + "/log");
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_NE(fcntl(log->get(), F_GETFD) & FD_CLOEXEC, 0);
  std::filesystem::create_symlink(root + "/log", root + "/link");
  EXPECT_THAT(std::string(OpenToAppend(root + "/link").status().message()),
              HasSubstr("it is a link"));
  std::filesystem::create_directory(root + "/elsewhere");
  std::filesystem::create_directory_symlink(root + "/elsewhere", root + "/1");
  EXPECT_THAT(std::string(OpenToAppend(root + "/1/log").status().message()),
              HasSubstr("its folder is a link"));
  EXPECT_TRUE(std::filesystem::is_empty(root + "/elsewhere"));
  ASSERT_EQ(mkfifo((root + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(OpenToAppend(root + "/pipe").ok()) << "and does not wait for a reader";
  std::filesystem::create_symlink(root + "/log", root + "/status.next");
  EXPECT_TRUE(ReplaceFile(root + "/status", "new").ok());
  EXPECT_EQ(std::filesystem::file_size(root + "/log"), 0u) << "not through the link";
}

// ---- Hangs --------------------------------------------------------------------------------------

TEST(FindStuck, BlamesTheStoppedRankOrTheOneWithTheFewestSteps) {
  const absl::Time t0 = absl::UnixEpoch();
  const WatchLimits limits{
      .start = absl::Seconds(60), .step = absl::Seconds(30), .stopped = absl::Seconds(10)};
  std::vector<RankView> ranks = {{.rank = 0, .steps = 6, .last_progress = t0},
                                 {.rank = 1, .steps = 5, .last_progress = t0}};
  EXPECT_FALSE(FindStuck(ranks, limits, t0 + absl::Seconds(29)).has_value());
  const auto stuck = FindStuck(ranks, limits, t0 + absl::Seconds(30));
  ASSERT_TRUE(stuck.has_value());
  EXPECT_EQ(stuck->rank, 1);
  ranks[0].last_progress = t0 + absl::Seconds(20);
  EXPECT_FALSE(FindStuck(ranks, limits, t0 + absl::Seconds(30)).has_value()) << "one moves";
  ranks[0].stopped_since = t0 + absl::Seconds(15);
  EXPECT_EQ(FindStuck(ranks, limits, t0 + absl::Seconds(25))->rank, 0);
}

TEST(FindStuck, TheFirstStepHasItsOwnLimitAndServersMayWait) {
  const absl::Time t0 = absl::UnixEpoch();
  const WatchLimits limits{.start = absl::Seconds(60), .step = absl::Seconds(30)};
  std::vector<RankView> ranks = {{.rank = 0, .last_progress = t0}};
  EXPECT_FALSE(FindStuck(ranks, limits, t0 + absl::Seconds(59)).has_value());
  EXPECT_THAT(FindStuck(ranks, limits, t0 + absl::Seconds(60))->why, HasSubstr("first step"));
  ranks[0].watched = false;
  EXPECT_FALSE(FindStuck(ranks, limits, t0 + absl::Hours(1)).has_value());
}

TEST(FindStuck, RanksThatWaitForNoOtherAreJudgedEachByItself) {
  const absl::Time t0 = absl::UnixEpoch();
  const WatchLimits limits{.start = absl::Seconds(60), .step = absl::Seconds(30)};
  std::vector<RankView> ranks = {
      {.rank = 0, .alone = true, .steps = 3, .last_progress = t0 + absl::Seconds(39)},
      {.rank = 1, .alone = true, .steps = 9, .last_progress = t0 + absl::Seconds(10)}};
  EXPECT_FALSE(FindStuck(ranks, limits, t0 + absl::Seconds(39)).has_value());
  ASSERT_TRUE(FindStuck(ranks, limits, t0 + absl::Seconds(40)).has_value());
  EXPECT_EQ(FindStuck(ranks, limits, t0 + absl::Seconds(40))->rank, 1);
  // One that others show how to make steps, and makes none.
  ranks[1].steps = 0;
  EXPECT_FALSE(FindStuck(ranks, limits, t0 + absl::Seconds(68)).has_value());
  ranks[0].last_progress = t0 + absl::Seconds(70);
  EXPECT_EQ(FindStuck(ranks, limits, t0 + absl::Seconds(70))->rank, 1);
  EXPECT_THAT(FindStuck(ranks, limits, t0 + absl::Seconds(70))->why, HasSubstr("did not move"));
  ranks[0].stopped_since = t0;
  EXPECT_EQ(FindStuck(ranks, limits, t0 + absl::Seconds(70))->rank, 0);
}

TEST(FindStuck, SilenceWithoutAnyStepMayBeWorkUnlessALimitWasGiven) {
  const absl::Time t0 = absl::UnixEpoch();
  WatchLimits limits{.start = absl::Seconds(60), .step = absl::Seconds(30), .without_steps = false};
  std::vector<RankView> ranks = {{.rank = 0, .last_progress = t0},
                                 {.rank = 1, .last_progress = t0}};
  const absl::Time late = t0 + absl::Seconds(60);
  ASSERT_TRUE(FindStuck(ranks, limits, late).has_value());
  EXPECT_TRUE(FindStuck(ranks, limits, late)->perhaps_at_work);
  limits.without_steps = true;
  EXPECT_FALSE(FindStuck(ranks, limits, late)->perhaps_at_work);
  limits.without_steps = false;
  ranks[0].steps = 1;
  EXPECT_FALSE(FindStuck(ranks, limits, late)->perhaps_at_work) << "steps are seen here";
  ranks[1].stopped_since = t0;
  ranks[0].steps = 0;
  EXPECT_FALSE(FindStuck(ranks, limits, late)->perhaps_at_work) << "stopped is no work";
}

// ---- Output -------------------------------------------------------------------------------------

TEST(LineCutter, CutsLinesAndKeepsTheLastStateOfAProgressBar) {
  LineCutter cutter;
  EXPECT_THAT(cutter.Feed("a\nb"), ElementsAre("a"));
  EXPECT_THAT(cutter.Feed("c\r\n"), ElementsAre("bc"));
  EXPECT_THAT(cutter.Feed("\r 1/9\r 2/9"), IsEmpty());
  EXPECT_EQ(cutter.Progress(), " 2/9");
  EXPECT_EQ(cutter.Progress(), "");
  EXPECT_THAT(cutter.Feed("\r 9/9\n"), ElementsAre(" 9/9"));
  EXPECT_THAT(cutter.Feed("end"), IsEmpty());
  EXPECT_EQ(cutter.Rest(), "end");
}

TEST(Plain, DropsColoursAndBackspaces) { EXPECT_EQ(Plain("\x1b[1mx\x1b[0m\b\b y"), "x y"); }

// ---- Messages -----------------------------------------------------------------------------------

TEST(Codec, EveryMessageSurvivesItsLine) {
  Joined joined{.address = "fe80::1", .node_rank = 2, .ranks = 3};
  joined.facts = {
      .host = "a b=c%,\n", .python = "3.11", .gpus = 8, .clock_ms = -5, .checkpoint_mark = "m"};
  const RankEnd end{.rank = 1,
                    .signal = 9,
                    .by_us = true,
                    .since_ms = 12,
                    .trouble = Trouble::kEcho,
                    .words = "two\nlines",
                    .port_stolen = true};
  for (const Report& report : std::vector<Report>{
           joined, Ready{.generation = 1, .ports = {"1", "2"}}, Ready{.error = "no, none"},
           Probed{.unreachable = {"a:1: b, c"}, .marks = {"x"}}, RankEnded{4, end}, RanksGone{5},
           RankStuck{6, 1, "why"}, RankStuck{6, 1, "why", true}, StopWanted{15}}) {
    const auto parsed = ParseReport(ToLine(report));
    ASSERT_TRUE(parsed.ok()) << ToLine(report);
    EXPECT_EQ(*parsed, report) << ToLine(report);
    EXPECT_THAT(ToLine(report), Not(HasSubstr("\n")));
  }
  for (const Command& command :
       std::vector<Command>{Prepare{1}, Probe{2, {"a:1", "[::1]:2"}},
                            StartRanks{.generation = 3,
                            .mode = Mode::kParameterServer,
                            .run_id = "r",
                            .addresses = {"a:1"}},
                            StopRanks{4, 15, 10}, DumpStacks{5}, Finish{6, "all done"}}) {
    const auto parsed = ParseCommand(ToLine(command));
    ASSERT_TRUE(parsed.ok()) << ToLine(command);
    EXPECT_EQ(*parsed, command) << ToLine(command);
  }
}

TEST(Codec, ForeignLinesAreRefusedAndTokensRideAlong) {
  for (const char* line : {"", "GET / HTTP/1.1", "prepare", "joined%20"}) {
    EXPECT_FALSE(ParseReport(line).ok()) << line;
  }
  EXPECT_EQ(TokenOf(WithToken(ToLine(Report(RanksGone{1})), "s p=")), "s p=");
}

// ---- Machines -----------------------------------------------------------------------------------

TEST(CompareNodes, NamesThePairAndTheRemedy) {
  NodeFacts a{.host = "a", .tensorflow = "2.21.0", .gpus = 2}, b = a;
  b.host = "b";
  EXPECT_THAT(CompareNodes({a, b}).errors, IsEmpty());
  b.gpus = 1;
  b.clock_ms = 5'000;
  EXPECT_THAT(CompareNodes({a, b}).errors, ElementsAre(HasSubstr("a shows 2, b shows 1")));
  EXPECT_THAT(CompareNodes({a, b}).warnings, ElementsAre(HasSubstr("5000 ms apart")));
}

TEST(Schedulers, SlurmsHostListsAreWrittenOut) {
  EXPECT_THAT(ExpandHostList("gpu[01-03,7],login"),
              ElementsAre("gpu01", "gpu02", "gpu03", "gpu7", "login"));
  EXPECT_THAT(ExpandHostList("n[1-2]-x"), ElementsAre("n1-x", "n2-x"));
  for (const char* bad : {"n[1-", "n[3-1]", "n[a]", "n[1-999999]"}) {
    EXPECT_THAT(ExpandHostList(bad), IsEmpty()) << bad;
  }
}

TEST(Schedulers, SlurmAndKubernetesSayWhoLeads) {
  const auto slurm =
      FromScheduler({"SLURM_STEP_NODELIST=n[1-2]", "SLURM_NODEID=1", "SLURM_STEP_ID=0"}, "n2");
  ASSERT_TRUE(slurm.has_value());
  EXPECT_EQ(slurm->nodes, 2);
  EXPECT_EQ(slurm->node_rank, 1);
  EXPECT_EQ(slurm->leader, "n1");
  EXPECT_FALSE(FromScheduler({"SLURM_JOB_NODELIST=n[1-2]", "SLURM_NODEID=0"}, "n1").has_value())
      << "a batch script is no step";
  const auto pod = FromScheduler({"JOB_COMPLETION_INDEX=3"}, "job-3.svc.ns.svc.cluster.local");
  ASSERT_TRUE(pod.has_value());
  EXPECT_EQ(pod->leader, "job-0.svc.ns.svc.cluster.local");
  EXPECT_FALSE(FromScheduler({}, "a").has_value());
}

// ---- Publishing ---------------------------------------------------------------------------------

TEST(Publish, BecomesTheNextVersionWholeOrNotAtAll) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "publish";
  fs::remove_all(folder);
  fs::create_directories(folder / "export/variables");
  fs::create_directories(folder / "model/7");
  std::ofstream(folder / "export/variables/variables.index") << "i";
  EXPECT_THAT(std::string(Publish(folder / "export", folder / "model").status().message()),
              HasSubstr("saved_model.pb is missing"));
  std::ofstream(folder / "export/saved_model.pb") << "graph";
  EXPECT_THAT(std::string(Publish(folder / "export", folder / "model").status().message()),
              HasSubstr("variables.data-* is missing"));
  std::ofstream(folder / "export/variables/variables.data-00000-of-00001") << "d";
  const auto path = Publish(folder / "export", folder / "model");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, (folder / "model/8").string());
  EXPECT_TRUE(fs::exists(folder / "model/8/variables/variables.index"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "model"), {}), 2) << "nothing is left";
}

TEST(Publish, AfterTheLargestNumberThereIsNoNext) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "publish_last";
  fs::remove_all(folder);
  fs::create_directories(folder / "export");
  std::ofstream(folder / "export/saved_model.pb") << "graph";
  fs::create_directories(folder / "model/9223372036854775807");
  EXPECT_THAT(std::string(Publish(folder / "export", folder / "model").status().message()),
              HasSubstr("there is no number after it"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "model"), {}), 1) << "nothing is left";
  std::ofstream(folder / "file") << "no folder";
  EXPECT_THAT(std::string(Publish(folder / "export", folder / "file").status().message()),
              HasSubstr("cannot make"));
}

TEST(Publish, WhatAKilledOneLeftIsRemovedWhenItIsOld) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "publish_left";
  fs::remove_all(folder);
  fs::create_directories(folder / "export");
  std::ofstream(folder / "export/saved_model.pb") << "graph";
  fs::create_directories(folder / "model/.publishing_1");
  fs::create_directories(folder / "model/.publishing_2");
  fs::last_write_time(folder / "model/.publishing_1",
                      fs::file_time_type::clock::now() - std::chrono::hours(25));
  ASSERT_TRUE(Publish(folder / "export", folder / "model").ok());
  EXPECT_FALSE(fs::exists(folder / "model/.publishing_1"));
  EXPECT_TRUE(fs::exists(folder / "model/.publishing_2")) << "it may be at work";
}

TEST(MarkOf, TellsAnExportFromTheOneBefore) {
  const std::string folder = testing::TempDir() + "/export_mark";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(MarkOf(folder), ExportMark());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/saved_model.pb") << "one";
  const ExportMark one = MarkOf(folder);
  EXPECT_NE(one, ExportMark());
  EXPECT_EQ(MarkOf(folder), one);
  std::ofstream(folder + "/next") << "one";
  std::filesystem::rename(folder + "/next", folder + "/saved_model.pb");
  EXPECT_NE(MarkOf(folder), one);
}

TEST(CheckPlaces, NeitherMayBeInTheOther) {
  EXPECT_TRUE(CheckPlaces("/tmp/export", "/tmp/export_served").ok());
  for (const auto& [from, to] : {std::pair("/a/b", "/a/b"), std::pair("/a", "/a/b"),
                                 std::pair("/a/b", "/a"), std::pair("/a/b/../c", "/a/c/")}) {
    EXPECT_FALSE(CheckPlaces(from, to).ok()) << from << " " << to;
  }
}

TEST(Publish, AMissingShardOrIndexIsNamed) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "publish_shards";
  fs::remove_all(folder);
  const fs::path variables = folder / "export/variables";
  fs::create_directories(variables);
  std::ofstream(folder / "export/saved_model.pb") << "graph";
  const auto said = [&] {
    const auto path = Publish(folder / "export", folder / "model");
    return path.ok() ? *path : std::string(path.status().message());
  };
  std::ofstream(variables / "variables.data-00001-of-00003") << "b";
  EXPECT_THAT(said(), HasSubstr("variables.index is missing"));
  std::ofstream(variables / "variables.index") << "i";
  EXPECT_THAT(said(), HasSubstr("variables.data-00000-of-00003 is missing"));
  std::ofstream(variables / "variables.data-00000-of-00003") << "a";
  EXPECT_THAT(said(), HasSubstr("variables.data-00002-of-00003 is missing"));
  // What an interrupted save leaves is no shard; a whole set of an earlier export may stay.
  std::ofstream(variables / "variables.data-00002-of-00003.tempstate7") << "c";
  std::ofstream(variables / "variables.data-00000-of-00001") << "old";
  EXPECT_THAT(said(), HasSubstr("variables.data-00002-of-00003 is missing"));
  EXPECT_FALSE(fs::exists(folder / "model/1"));
  std::ofstream(variables / "variables.data-00002-of-00003") << "c";
  EXPECT_EQ(said(), (folder / "model/1").string());
}

TEST(Publish, ACopyThatDiffersInOneByteIsNoCopy) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "publish_compare";
  fs::remove_all(folder);
  fs::create_directories(folder / "from/variables");
  const fs::path data = "variables/variables.data-00000-of-00001";
  std::string bytes(3 << 20, 'x');
  std::ofstream(folder / "from/saved_model.pb") << "graph";
  std::ofstream(folder / "from" / data) << bytes;
  const auto said = [&] {
    return std::string(CompareFolders(folder / "from", folder / "to").message());
  };
  fs::copy(folder / "from", folder / "to", fs::copy_options::recursive);
  EXPECT_EQ(said(), "");
  bytes[(2 << 20) + 5] = 'y';
  std::ofstream(folder / "to" / data) << bytes;
  EXPECT_THAT(said(), HasSubstr((folder / "to" / data).string() + " is not as"));
  std::ofstream(folder / "to" / data) << std::string(2 << 20, 'x');
  EXPECT_THAT(said(), HasSubstr("is not as")) << "cut";
  std::ofstream(folder / "to" / data) << std::string((3 << 20) + 1, 'x');
  EXPECT_THAT(said(), HasSubstr("is not as")) << "longer";
  fs::remove(folder / "to" / data);
  EXPECT_THAT(said(), HasSubstr("is not as")) << "gone";
  fs::copy(folder / "from" / data, folder / "to" / data);
  EXPECT_EQ(said(), "");
}

// ---- Processes and ports ------------------------------------------------------------------------

TEST(DescendantsIn, FindsAllGenerations) {
  EXPECT_THAT(DescendantsIn({{2, 1}, {9, 2}, {3, 9}, {4, 8}}, 1), UnorderedElementsAre(2, 9, 3));
}

TEST(GroupFolder, IsWhereOurOwnGroupIsMounted) {
  const std::string mounts =
      "30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
      "31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(GroupFolder(mounts, "4:memory:/x\n0::/a/b\n"), "/sys/fs/cgroup/unified/a/b");
  EXPECT_EQ(GroupFolder(mounts, "0::/\n"), "/sys/fs/cgroup/unified");
  EXPECT_EQ(GroupFolder("31 30 0:27 /pod /sys/fs/cgroup rw - cgroup2 c rw\n", "0::/pod/c\n"),
            "/sys/fs/cgroup/c");
  EXPECT_EQ(GroupFolder("31 30 0:27 /pod /sys/fs/cgroup rw - cgroup2 c rw\n", "0::/other\n"), "");
  EXPECT_EQ(GroupFolder(mounts, "4:memory:/x\n"), "") << "version 1 alone";
}

TEST(ReservedPort, CanBeReachedUntilItStopsListening) {
  auto port = ReservedPort::Take();
  ASSERT_TRUE(port.ok());
  ASSERT_TRUE(port->Listen().ok());
  const std::string address = "127.0.0.1:" + std::to_string(port->port());
  EXPECT_THAT(Unreachable({address}), IsEmpty());
  port->StopListening();
  EXPECT_THAT(Unreachable({address}), ElementsAre(HasSubstr(address)));
}

TEST(StepRate, IsTheOneOfTheLastSeconds) {
  StepRate rate;
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(rate.PerSecond(), 0);
  rate.Add(start, 0);
  rate.Add(start + absl::Seconds(5), 50);
  EXPECT_DOUBLE_EQ(rate.PerSecond(), 10);
  for (int i = 6; i <= 40; ++i) rate.Add(start + absl::Seconds(i), 50);
  EXPECT_DOUBLE_EQ(rate.PerSecond(), 0) << "it has stopped";
}

TEST(StatusJson, IsWhatTopReads) {
  EXPECT_EQ(
      StatusJson({{.name = "worker/0", .step = 3, .steps_per_second = 1.5, .input_wait = 0.25}}),
      "{\"ranks\": [{\"name\": \"worker/0\", \"step\": 3, \"steps_per_second\": 1.5, "
      "\"input_wait\": 0.25}]}\n");
  EXPECT_THAT(StatusJson({{.name = "a\"b"}}), HasSubstr("a\\\"b"));
  EXPECT_THAT(
      StatusJson({{.name = "worker/0",
                   .input_stage = "Map",
                   .input_stage_share = 0.5,
                   .all_reduce = 0.25,
                   .all_reduce_bytes = 4096}}),
      HasSubstr("\"input_stage\": \"Map\", \"input_stage_share\": 0.5, \"all_reduce\": 0.25, "
                "\"all_reduce_bytes\": 4096}"));
}

TEST(Room, IsMadeAtOnceAndGivenBackAfterAWhile) {
  Room room(false);
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(room.Decide(false, start), Share::kAll);
  EXPECT_EQ(room.Decide(true, start + absl::Seconds(1)), Share::kPulse);
  EXPECT_EQ(room.Decide(false, start + absl::Seconds(2)), Share::kPulse);
  EXPECT_EQ(room.Decide(false, start + absl::Seconds(5)), Share::kAll);
}

TEST(Room, WeightComesFirstAndPausesOnlyWhenThatDoesNotHelp) {
  Room room(true);
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(room.Decide(true, start), Share::kLight);
  EXPECT_EQ(room.Decide(true, start + absl::Seconds(2)), Share::kLight);
  EXPECT_EQ(room.Decide(true, start + absl::Seconds(3)), Share::kPulse);
  EXPECT_EQ(room.Decide(false, start + absl::Seconds(5)), Share::kPulse);
  EXPECT_EQ(room.Decide(false, start + absl::Seconds(6)), Share::kLight);
  EXPECT_EQ(room.Decide(false, start + absl::Seconds(8)), Share::kLight);
  EXPECT_EQ(room.Decide(false, start + absl::Seconds(9)), Share::kAll);
}

TEST(Room, WeightThatHelpsIsGivenBackWithoutAPause) {
  Room room(true);
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(room.Decide(true, start), Share::kLight);
  EXPECT_EQ(room.Decide(false, start + absl::Seconds(1)), Share::kLight);
  EXPECT_EQ(room.Decide(false, start + absl::Seconds(3)), Share::kAll);
}

TEST(SetGroupWeight, SaysWhereThereIsNone) {
  EXPECT_FALSE(SetGroupWeight("", kGroupWeightLight));
  EXPECT_FALSE(SetGroupWeight(testing::TempDir() + "/no_group", kGroupWeightLight));
  const std::string group = testing::TempDir() + "/group_with_a_weight";
  std::filesystem::create_directories(group);
  std::ofstream(group + "/cpu.weight") << "100";
  EXPECT_TRUE(SetGroupWeight(group, kGroupWeightLight));
  EXPECT_EQ(base::SmallFile(group + "/cpu.weight").substr(0, 2), "10");
}

TEST(BodyOf, IsWhatFollowsTheHeadOfAGoodAnswer) {
  EXPECT_EQ(*BodyOf("HTTP/1.1 200 OK\r\nA: b\r\n\r\nx 1\n"), "x 1\n");
  EXPECT_THAT(std::string(base::Message(BodyOf("HTTP/1.1 404 Not Found\r\n\r\n").status())),
              HasSubstr("--monitoring_config_file"));
  EXPECT_FALSE(BodyOf("").ok());
}

}  // namespace
}  // namespace tensord::train
