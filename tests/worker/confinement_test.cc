// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <dirent.h>
#include <sys/stat.h>
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

}  // namespace
}  // namespace tensord::testing
