// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "base/text.h"
#include "tests/worker/process_test.h"

namespace tensord::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kNoPermission[] = "Permission denied";
constexpr char kNotPermitted[] = "Operation not permitted";

class ConfinementTest : public ProcessTest {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    if (IsSkipped()) return;
    worker_ = Load("probe/1");
    ASSERT_NE(worker_, nullptr);
  }
  std::string Ask(const std::string& what, const std::string& argument = "") {
    return Probe(worker_.get(), what, argument);
  }
  std::unique_ptr<TestWorker> worker_;
};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_F(ConfinementTest, EveryLayerIsReportedWithWhatWasSeen) {
  const std::vector<std::string>& lines = worker_->info().sandbox;
  for (const char* layer : {"no_new_privs: on", "user: ", "limits: ", "landlock: ABI",
                            "seccomp: ", "probe: ", "capabilities: none in "}) {
    EXPECT_THAT(lines, Contains(StartsWith(layer)));
  }
  EXPECT_THAT(lines, Each(Not(HasSubstr("NOT"))));
  EXPECT_EQ(worker_->info().sandbox_grade, getuid() == 0 ? "A" : "B");
  EXPECT_EQ(worker_->info().sandbox_stage, 1u);
}

TEST_F(ConfinementTest, ManyForbiddenActsAreTriedInLittleTime) {
  for (const std::string& line : worker_->info().sandbox) {
    int refused = 0, tried = 0, microseconds = 0;
    if (std::sscanf(line.c_str(), "probe: %d of %d forbidden acts refused, in %d us", &refused,
                    &tried, &microseconds) != 3) {
      continue;
    }
    GTEST_LOG_(INFO) << line;
    EXPECT_GE(tried, 80);
    EXPECT_LT(microseconds, 50'000);  // Some hundred on a machine that does nothing else.
    return;
  }
  FAIL() << "no line of the probe";
}

TEST_F(ConfinementTest, AModelCannotOpenTheSharedMemoryAnew) {
  EXPECT_THAT(Ask("memory"), AnyOf(kNoPermission, kNotPermitted));
  EXPECT_EQ(Ask("call", base::Cat(SYS_memfd_create, " 0 1")), kNotPermitted);
}

TEST_F(ConfinementTest, AModelStaysItsParentsChild) {
  EXPECT_EQ(Ask("call", base::Cat(SYS_prctl, " ", PR_SET_PDEATHSIG, " 0")), kNotPermitted);
  EXPECT_EQ(Ask("call", base::Cat(SYS_sched_setaffinity, " ", getpid(), " 0 0")), kNotPermitted);
  EXPECT_EQ(Ask("call", base::Cat(SYS_ptrace, " 2 ", getpid())), kNotPermitted);
}

// The kernel drops it of every int, so the filter must not go by it.
constexpr long kUpperHalf = 1L << 32;

TEST_F(ConfinementTest, WhatStandsAboveAnIntOpensNothingAndShutsNothing) {
  EXPECT_EQ(Ask("call", base::Cat(SYS_ioctl, " 0 ", kUpperHalf | TIOCSTI, " 0")), kNotPermitted);
  EXPECT_EQ(Ask("call", base::Cat(SYS_fcntl, " 1 ", kUpperHalf | F_SETOWN, " 0")), kNotPermitted);
  EXPECT_EQ(Ask("call", base::Cat(SYS_tgkill, " ", kUpperHalf | getpid(), " 1 0")), kNotPermitted);
  EXPECT_EQ(Ask("call", base::Cat(SYS_fcntl, " ", kUpperHalf | 1, " ", kUpperHalf | F_GETFD)),
            "done");
}

TEST_F(ConfinementTest, AModelReadsOnlyItsOwnFiles) {
  EXPECT_EQ(Ask("read", "/etc/passwd"), kNoPermission);
  EXPECT_EQ(Ask("read", PathOf("half/1/saved_model.pb")), kNoPermission);
  EXPECT_EQ(Ask("read", PathOf("probe/1/saved_model.pb")), "done");
  EXPECT_EQ(Ask("read", "/proc/cpuinfo"), "done");
  EXPECT_THAT(Ask("list", "/"), HasSubstr(kNoPermission));
}

TEST_F(ConfinementTest, AModelWritesNowhere) {
  for (const std::string& path : {std::string("/tmp/tensord_probe"), PathOf("probe/1/new"),
                                  PathOf("probe/1/saved_model.pb"), std::string("/dev/null")}) {
    EXPECT_THAT(Ask("write", path), AnyOf(kNoPermission, kNotPermitted)) << path;
  }
}

TEST_F(ConfinementTest, AModelHasNoNetworkNoProcessesAndNoSignals) {
  EXPECT_EQ(Ask("socket", "inet"), kNotPermitted);
  EXPECT_EQ(Ask("socket", "unix"), kNotPermitted);
  EXPECT_EQ(Ask("fork"), kNotPermitted);
  EXPECT_EQ(Ask("exec", "/bin/true"), kNotPermitted);
  EXPECT_EQ(Ask("signal", std::to_string(getpid())), kNotPermitted);
}

TEST_F(ConfinementTest, StockOpsAreHeldLikewise) {
  const auto files = Load("files/1");
  ASSERT_NE(files, nullptr);
  const tensor::Tensor passwd = Strings({}, {"/etc/passwd"});
  const absl::Status read = StatusOf(files.get(), "serving_default", {&passwd});
  EXPECT_TRUE(absl::IsPermissionDenied(read)) << read;
  const tensor::Tensor own = Strings({}, {PathOf("files/1/saved_model.pb")});
  EXPECT_EQ(Outputs(files.get(), "serving_default", {&own}).size(), 1u);
  const tensor::Tensor made = Strings({}, {"/tmp/tensord_written"});
  const absl::Status write = StatusOf(files.get(), "write", {&made, &passwd});
  EXPECT_FALSE(write.ok());
  EXPECT_FALSE(std::filesystem::exists("/tmp/tensord_written"));
}

TEST_F(ConfinementTest, TheChannelIsTheOnlySocketAndTheOnlyOddDescriptor) {
  const std::string path = base::Cat("/proc/", worker_->pid(), "/fd");
  size_t sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string target = std::filesystem::read_symlink(entry.path());
    sockets += target.starts_with("socket:") ? 1 : 0;
    EXPECT_THAT(target, AnyOf(StartsWith("socket:"), StartsWith("pipe:"), "/dev/null",
                              "anon_inode:[eventfd]"));
  }
  EXPECT_EQ(sockets, 1u);
}

TEST_F(ConfinementTest, ForeignVariablesAreGoneFromEnvironmentAndMemory) {
  EXPECT_THAT(Lines(Ask("environ")),
              ::testing::UnorderedElementsAre("OMP_NUM_THREADS=3", "TF_CPP_MIN_LOG_LEVEL=1"));
  // What the kernel shows of the process's first page, as a debugger would read it.
  EXPECT_THAT(ReadFile(base::Cat("/proc/", worker_->pid(), "/environ")),
              Not(HasSubstr("tensord_secret_6153")));
}

TEST_F(ConfinementTest, AWorkerOfRootHasAUserOfItsOwnAndNoCapability) {
  if (getuid() != 0) GTEST_SKIP() << "not root";
  EXPECT_EQ(Ask("ids"), "61234 61234");
  const std::string tasks = base::Cat("/proc/", worker_->pid(), "/task");
  size_t threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tasks)) {
    const std::string status = ReadFile(entry.path() / "status");
    EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
    EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000"));
    EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
    ++threads;
  }
  EXPECT_GE(threads, 3u);
}

TEST_F(ConfinementTest, FilesThatOnlyRootMayReadStillLoad) {
  if (getuid() != 0) GTEST_SKIP() << "not root";
  char place[] = "/tmp/tensord_rootonly_XXXXXX";
  ASSERT_NE(mkdtemp(place), nullptr);
  std::filesystem::copy(PathOf("half"), base::Cat(place, "/half"),
                        std::filesystem::copy_options::recursive);
  chmod(place, 0700);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place)) {
    chmod(entry.path().c_str(), entry.is_directory() ? 0700 : 0600);
  }
  const auto worker = Load(TestWorker::LoadOf(base::Cat(place, "/half/1")));
  std::filesystem::remove_all(place);
  ASSERT_NE(worker, nullptr);
  const tensor::Tensor x = Floats({2});
  EXPECT_EQ(Values<float>(Outputs(worker.get(), "serving_default", {&x})[0])[0], 3);
}

TEST_F(ConfinementTest, WithoutASandboxTheReportSaysSo) {
  channel::LoadRecord record = LoadOf("probe/1");
  record.sandbox = false;
  const auto open = Load(record);
  ASSERT_NE(open, nullptr);
  EXPECT_THAT(open->info().sandbox, ::testing::ElementsAre(HasSubstr("off")));
  EXPECT_EQ(Probe(open.get(), "read", "/etc/passwd"), "done");
}

TEST_F(ConfinementTest, WhatAModelPrintsReachesThePipes) {
  EXPECT_EQ(Ask("print", "2"), "done");
  EXPECT_THAT(worker_->Output(), HasSubstr("probe says 1 on stdout\n"));
  EXPECT_THAT(worker_->Output(), HasSubstr("probe says 1 on stderr\n"));
}

// After warm-up: stage 2.
class SealedTest : public ConfinementTest {
 protected:
  void SetUp() override {
    ConfinementTest::SetUp();
    if (IsSkipped() || HasFailure()) return;
    SealIt();
  }
  void SealIt() {
    const absl::StatusOr<std::string> sealed = worker_->Seal();
    ASSERT_TRUE(sealed.ok()) << sealed.status() << worker_->Output();
    EXPECT_THAT(*sealed, HasSubstr("stage 2: seccomp: "));
  }
  // The number of the system call that ended the worker when its model did this; or what it
  // answered.
  std::string EndOf(const std::string& what, const std::string& argument = "") {
    const tensor::Tensor word = Strings({1}, {what});
    const tensor::Tensor rest = Strings({1}, {argument});
    if (!worker_->Send(channel::RunRecord{{worker_->Prepare("serving_default", {&rest, &word})}})
             .ok()) {
      return "cannot be sent";
    }
    const absl::StatusOr<channel::ToFront> answer = worker_->Receive();
    if (!answer.ok()) return std::string(base::Message(answer.status()));
    const auto* dying = std::get_if<channel::DyingRecord>(&*answer);
    if (dying == nullptr) return "it lives on";
    EXPECT_EQ(dying->signal, SIGSYS);
    const std::optional<Ended> ended = worker_->Wait();
    EXPECT_TRUE(ended && ended->signal == SIGSYS);
    return std::to_string(dying->system_call);
  }
};

TEST_F(SealedTest, EveryThreadIsSealedAndTheModelRunsOn) {
  size_t threads = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(base::Cat("/proc/", worker_->pid(), "/task"))) {
    EXPECT_THAT(ReadFile(entry.path() / "status"), HasSubstr("Seccomp_filters:\t2"));
    ++threads;
  }
  EXPECT_GE(threads, 3u);
  EXPECT_EQ(Ask("thread"), "done");
  EXPECT_EQ(Ask("allocate", "64"), "done");
  EXPECT_EQ(Ask("print", "1"), "done");
  EXPECT_EQ(Ask("sleep", "1"), "done");
}

TEST_F(SealedTest, NamingAFileFailsAndEndsNothing) {
  EXPECT_EQ(Ask("read", PathOf("probe/1/saved_model.pb")), kNoPermission);
  EXPECT_EQ(Ask("read", "/proc/cpuinfo"), kNoPermission);
  EXPECT_EQ(Ask("read", "/etc/passwd"), kNoPermission);
  EXPECT_EQ(Ask("read", "/dev/null"), kNoPermission);
  EXPECT_EQ(Ask("read", "/dev/urandom"), "done");  // Where the runtime's random numbers begin.
  EXPECT_EQ(Ask("write", "/tmp/tensord_probe"), kNoPermission);
  EXPECT_THAT(Ask("list", "/"), HasSubstr(kNoPermission));
  EXPECT_EQ(Ask("memory"), kNoPermission);
  EXPECT_EQ(Ask("pid"), std::to_string(worker_->pid()));
}

TEST_F(SealedTest, WhatNoRunNeedsEndsTheWorkerAndIsNamed) {
  const std::string parent = std::to_string(getpid());
  const std::tuple<std::string, std::string, long> acts[] = {
      {"socket", "inet", SYS_socket},
      {"socket", "unix", SYS_socket},
      {"fork", "", SYS_clone},
      {"exec", "/bin/true", SYS_execve},
      {"signal", parent, SYS_kill},
      {"call", base::Cat(SYS_ptrace, " 16 ", parent), SYS_ptrace},
      {"call", base::Cat(SYS_memfd_create, " 0 1"), SYS_memfd_create},
      {"call", base::Cat(SYS_tgkill, " ", parent, " ", parent, " 0"), SYS_tgkill},
      // It may try not to hear of it.
      {"deaf", base::Cat(SYS_socket, " 2 1 0"), SYS_socket},
  };
  for (const auto& [what, argument, call] : acts) {
    EXPECT_EQ(EndOf(what, argument), std::to_string(call)) << what << " " << argument;
    worker_ = Load("probe/1");
    ASSERT_NE(worker_, nullptr);
    ASSERT_NO_FATAL_FAILURE(SealIt());
  }
}

TEST_F(SealedTest, TheHandlerOfForbiddenCallsStaysByWhateverNumberItIsAskedFor) {
  // Asks for the handler of a signal and sets none.
  const auto handler = [this](long signal) {
    return Ask("call", base::Cat(SYS_rt_sigaction, " ", signal, " 0 0 8"));
  };
  for (int signal = 1; signal <= 64; ++signal) {
    const char* const expected = signal == SIGSYS ? kNotPermitted : "done";
    EXPECT_EQ(handler(signal), expected) << signal;
    EXPECT_EQ(handler(kUpperHalf | signal), expected) << signal;
    EXPECT_EQ(handler(-kUpperHalf | signal), expected) << signal;
  }
}

TEST_F(SealedTest, XlaCompilesForNewShapes) {
  worker_ = Load("jitted/1");
  ASSERT_NE(worker_, nullptr);
  ASSERT_NO_FATAL_FAILURE(SealIt());
  for (const int rows : {1, 3, 7}) {
    const tensor::Tensor x = MakeTensor(tensor::DType::kFloat, {rows, 64},
                                        std::vector<float>(static_cast<size_t>(rows) * 64, 0.5f));
    const auto outputs = Outputs(worker_.get(), "serving_default", {&x});
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].shape, (tensor::Shape{rows, 10}));
  }
}

TEST_F(SealedTest, AGraphThatReadsFilesGetsAnError) {
  worker_ = Load("files/1");
  ASSERT_NE(worker_, nullptr);
  ASSERT_NO_FATAL_FAILURE(SealIt());
  const tensor::Tensor own = Strings({}, {PathOf("files/1/saved_model.pb")});
  EXPECT_TRUE(absl::IsPermissionDenied(StatusOf(worker_.get(), "serving_default", {&own})));
  const tensor::Tensor made = Strings({}, {"/tmp/tensord/written"});
  EXPECT_FALSE(StatusOf(worker_.get(), "write", {&made, &own}).ok());
  EXPECT_FALSE(std::filesystem::exists("/tmp/tensord/written"));
}

// Where layers cannot be had, models are served all the same, and the report is the truth.
class DegradedTest : public ProcessTest {
 protected:
  void StartIn(TestZygote::Options options, uint32_t sandbox_user) {
    channel::LoadRecord record = LoadOf("probe/1");
    record.sandbox_user = sandbox_user;
    const absl::Status loaded = LoadIn(std::move(options), record);
    ASSERT_TRUE(loaded.ok()) << loaded << (worker_ == nullptr ? "" : worker_->Output());
  }
  absl::Status LoadIn(TestZygote::Options options, const channel::LoadRecord& record) {
    auto zygote = TestZygote::Start(std::move(options));
    if (!zygote.ok()) return zygote.status();
    worker_.reset();
    zygote_ = *std::move(zygote);
    auto worker = zygote_->Fork();
    if (!worker.ok()) return worker.status();
    worker_ = *std::move(worker);
    return worker_->Load(record);
  }
  std::string Report() const {
    std::string text;
    for (const std::string& line : worker_->info().sandbox) text += line + "\n";
    return text;
  }
  std::unique_ptr<TestZygote> zygote_;
  std::unique_ptr<TestWorker> worker_;
};

TEST_F(DegradedTest, WithoutRootTheUserIsTheServersAndTheRestHolds) {
  if (getuid() != 0) GTEST_SKIP() << "not root, so every other test shows this";
  ASSERT_NO_FATAL_FAILURE(StartIn({.user = 65534}, 61234));
  EXPECT_EQ(Probe(worker_.get(), "ids"), "65534 65534");
  EXPECT_THAT(Report(), HasSubstr("only root can give it its own"));
  EXPECT_THAT(Report(), Not(HasSubstr("NOT refused")));
  EXPECT_THAT(Report(), HasSubstr("capabilities: none in"));
}

TEST_F(DegradedTest, AContainerThatForbidsChangingTheUserIsTold) {
  if (getuid() != 0) GTEST_SKIP() << "not root";
  ASSERT_NO_FATAL_FAILURE(StartIn({.refused_calls = {{SYS_setgroups}, {SYS_setresuid}}}, 61234));
  EXPECT_EQ(Probe(worker_.get(), "ids"), "0 0");
  EXPECT_THAT(Report(), HasSubstr("user: not applied: 0 instead of 61234"));
  EXPECT_THAT(worker_->Output(), HasSubstr("user: not applied"));
  EXPECT_THAT(Report(), HasSubstr("capabilities: none in"));
}

TEST_F(DegradedTest, WithoutLandlockTheProbeNamesWhatIsOpen) {
  ASSERT_NO_FATAL_FAILURE(StartIn({.refused_calls = {{SYS_landlock_create_ruleset}}}, 0));
  EXPECT_EQ(Probe(worker_.get(), "read", "/etc/passwd"), "done");
  EXPECT_THAT(Report(), HasSubstr("landlock: not applied"));
  EXPECT_THAT(Report(), HasSubstr("probe: NOT refused: open /etc/passwd (it worked)"));
  EXPECT_THAT(worker_->Output(), HasSubstr("sandbox: landlock: not applied"));
  // What the other layers refuse stays refused.
  EXPECT_EQ(Probe(worker_.get(), "socket", "inet"), kNotPermitted);
  EXPECT_EQ(Probe(worker_.get(), "write", "/tmp/tensord_probe"), kNotPermitted);
}

TEST_F(DegradedTest, WithoutSeccompLandlockStillHoldsTheFiles) {
  ASSERT_NO_FATAL_FAILURE(
      StartIn({.refused_calls = {{SYS_seccomp}, {SYS_prctl, PR_SET_SECCOMP}}}, 0));
  EXPECT_THAT(Report(), HasSubstr("seccomp: not applied"));
  EXPECT_THAT(Report(), HasSubstr("probe: NOT refused: make a socket (IPv4) (it worked)"));
  EXPECT_EQ(Probe(worker_.get(), "read", "/etc/passwd"), kNoPermission);
  EXPECT_EQ(worker_->info().sandbox_grade, "C");
}

// What Docker's default profile refuses to a container without further capabilities.
std::vector<RefusedCall> AsDockerDoes() {
  std::vector<RefusedCall> calls;
  for (const int number : {SYS_acct,
                           SYS_add_key,
                           SYS_bpf,
                           SYS_clock_settime,
                           SYS_delete_module,
                           SYS_fanotify_init,
                           SYS_finit_module,
                           SYS_fsopen,
                           SYS_get_mempolicy,
                           SYS_init_module,
                           SYS_io_uring_setup,
                           SYS_kcmp,
                           SYS_kexec_load,
                           SYS_keyctl,
                           SYS_mbind,
                           SYS_mount,
                           SYS_move_mount,
                           SYS_move_pages,
                           SYS_name_to_handle_at,
                           SYS_open_by_handle_at,
                           SYS_open_tree,
                           SYS_perf_event_open,
                           SYS_pidfd_getfd,
                           SYS_pivot_root,
                           SYS_process_vm_readv,
                           SYS_process_vm_writev,
                           SYS_ptrace,
                           SYS_quotactl,
                           SYS_reboot,
                           SYS_request_key,
                           SYS_set_mempolicy,
                           SYS_setns,
                           SYS_swapon,
                           SYS_syslog,
                           SYS_umount2,
                           SYS_unshare,
                           SYS_userfaultfd}) {
    calls.push_back({number});
  }
  return calls;
}

TEST_F(DegradedTest, UnderAContainersFilterTheLeastHoldsAndAModelIsRefusedEachTime) {
  channel::LoadRecord record = LoadOf("probe/1");
  record.sandbox_enforced = true;
  const absl::Status loaded = LoadIn({.refused_calls = AsDockerDoes()}, record);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(worker_->info().sandbox_grade, "B");
  EXPECT_THAT(Report(), HasSubstr("namespaces: the server's"));
  EXPECT_THAT(Report(), Not(HasSubstr("NOT refused")));
  for (const bool sealed : {false, true}) {
    if (sealed) {
      const auto report = worker_->Seal();
      ASSERT_TRUE(report.ok()) << report.status();
    }
    EXPECT_EQ(Probe(worker_.get(), "read", "/etc/passwd"), kNoPermission);
    EXPECT_EQ(Probe(worker_.get(), "read", PathOf("half/1/saved_model.pb")), kNoPermission);
    EXPECT_THAT(Probe(worker_.get(), "write", PathOf("probe/1/new")),
                AnyOf(kNoPermission, kNotPermitted));
    EXPECT_THAT(Probe(worker_.get(), "memory"), AnyOf(kNoPermission, kNotPermitted));
    EXPECT_EQ(Probe(worker_.get(), "thread"), "done");
    if (sealed) continue;
    EXPECT_EQ(Probe(worker_.get(), "socket", "inet"), kNotPermitted);
    EXPECT_EQ(Probe(worker_.get(), "fork"), kNotPermitted);
    EXPECT_EQ(Probe(worker_.get(), "signal", std::to_string(getpid())), kNotPermitted);
  }
}

TEST_F(DegradedTest, EnforcedAModelIsNotReadWhereTheLeastDoesNotHold) {
  channel::LoadRecord record = LoadOf("probe/1");
  record.sandbox_enforced = true;
  absl::Status status = LoadIn({.refused_calls = {{SYS_landlock_create_ruleset}}}, record);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(base::Message(status)),
              HasSubstr("files outside the model's directory can be read, which "
                        "--accept_weak_sandbox=files accepts (open /etc/passwd: it worked)"));
  record.accept_weak_files = true;
  status = LoadIn({.refused_calls = {{SYS_landlock_create_ruleset}}}, record);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(worker_->info().sandbox_grade, "C");
  status = LoadIn({.refused_calls = {{SYS_seccomp}, {SYS_prctl, PR_SET_SECCOMP}}}, record);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(base::Message(status)), HasSubstr("the network is not closed"));
}

TEST_F(DegradedTest, EnforcedItWorksForAnOrdinaryUser) {
  if (getuid() != 0) GTEST_SKIP() << "not root, so every other test shows this";
  channel::LoadRecord record = LoadOf("probe/1");
  record.sandbox_enforced = true;
  record.sandbox_user = 0;
  const absl::Status status = LoadIn({.user = 65534}, record);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(worker_->info().sandbox_grade, "B");
  EXPECT_TRUE(worker_->Seal().ok());
  EXPECT_EQ(Probe(worker_.get(), "thread"), "done");
}

}  // namespace
}  // namespace tensord::testing
