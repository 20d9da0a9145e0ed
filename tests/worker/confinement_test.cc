// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

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

// Where layers cannot be had, models are served all the same, and the report is the truth.
class DegradedTest : public ProcessTest {
 protected:
  void StartIn(TestZygote::Options options, uint32_t sandbox_user) {
    auto zygote = TestZygote::Start(std::move(options));
    ASSERT_TRUE(zygote.ok()) << zygote.status();
    zygote_ = *std::move(zygote);
    auto worker = zygote_->Fork();
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    channel::LoadRecord record = LoadOf("probe/1");
    record.sandbox_user = sandbox_user;
    const absl::Status loaded = worker_->Load(record);
    ASSERT_TRUE(loaded.ok()) << loaded << worker_->Output();
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
}

}  // namespace
}  // namespace tensord::testing
