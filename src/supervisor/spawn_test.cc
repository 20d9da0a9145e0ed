// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/spawn.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Runs a shell line as the supervisor starts programs, and gives what it wrote to descriptor 3.
std::string Shell(const std::string& line, const std::vector<int>& inherited = {}) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  base::UniqueFd reading(ends[0]);
  base::UniqueFd writing(ends[1]);
  const Program program{.path = "/bin/sh",
                        .arguments = {"sh", "-c", line},
                        .environment = {"PATH=/bin:/usr/bin", "GREETING=hello world"}};
  const absl::StatusOr<pid_t> pid = Start(program, writing.get(), inherited);
  EXPECT_TRUE(pid.ok());
  writing.Reset();
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = read(reading.get(), part, sizeof(part))) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  int status = 0;
  EXPECT_EQ(waitpid(*pid, &status, 0), *pid);
  EXPECT_EQ(status, 0);
  return text;
}

TEST(Start, GivesArgumentsEnvironmentAndSocket) {
  EXPECT_EQ(Shell("echo \"$0 $GREETING\" >&3"), "sh hello world\n");
}

TEST(Start, LeavesOnlyTheDescriptorsThatWereNamed) {
  TidyDescriptors();
  const base::UniqueFd secret(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const base::UniqueFd given(fcntl(secret.get(), F_DUPFD_CLOEXEC, 40));
  // The shell's own descriptor on the directory comes and goes; `ls` names those of a child.
  const std::string list = Shell(
      "for f in 0 1 2 3 4 5 6 7 8 9 40; do "
      "[ -e /proc/$$/fd/$f ] && echo $f >&3; done; exit 0",
      {given.get()});
  EXPECT_EQ(list, "0\n1\n2\n3\n40\n");
}

TEST(Start, PutsTheProgramInAGroupOfItsOwnWithNothingBlocked) {
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
  // The mask of a child of the shell: the shell itself blocks signals while it starts one.
  const std::string text =
      Shell("cut -d' ' -f1,5 /proc/$$/stat >&3; grep SigBlk /proc/self/status >&3");
  ASSERT_EQ(sigprocmask(SIG_SETMASK, &before, nullptr), 0);
  const std::string pid = text.substr(0, text.find(' '));
  EXPECT_EQ(text, base::Cat(pid, " ", pid, "\nSigBlk:\t0000000000000000\n"));
}

TEST(Start, LeavesSignalsToTheSupervisor) {
  // The shell would die of the first one and write nothing.
  const std::string text =
      Shell("for s in INT TERM HUP QUIT USR1 USR2; do kill -$s $$; done; echo alive >&3");
  EXPECT_EQ(text, "alive\n");
}

TEST(Start, IsAChildWithExitCode127WhenThereIsNoSuchProgram) {
  const Program program{.path = "/no/such/program", .arguments = {"x"}, .environment = {}};
  const base::UniqueFd socket(open("/dev/null", O_RDONLY | O_CLOEXEC));
  testing::internal::CaptureStderr();
  const absl::StatusOr<pid_t> pid = Start(program, socket.get(), {});
  ASSERT_TRUE(pid.ok());
  int status = 0;
  EXPECT_EQ(waitpid(*pid, &status, 0), *pid);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("cannot start /no/such/program: execve: No such file or directory"));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 127);
}

TEST(FrontEnvironment, KeepsMoreFreedPiecesAtHandUnlessToldOtherwise) {
  const std::string ours = "glibc.malloc.tcache_count=128";
  EXPECT_THAT(FrontEnvironment({"A=1"}), ElementsAre("A=1", "GLIBC_TUNABLES=" + ours));
  EXPECT_THAT(FrontEnvironment({"GLIBC_TUNABLES=glibc.malloc.arena_max=2", "A=1"}),
              ElementsAre("A=1", "GLIBC_TUNABLES=glibc.malloc.arena_max=2:" + ours));
  const std::string theirs = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0";
  EXPECT_THAT(FrontEnvironment({theirs, "A=1"}), ElementsAre(theirs, "A=1"));
}

TEST(ZygoteEnvironment, SetsOneDnnAndQuietsTheRuntime) {
  using channel::OneDnn;
  const std::vector<std::string> plain = {"A=1", "TF_ENABLE_ONEDNN_OPTS=1"};
  const std::string threads = "TF_OVERRIDE_GLOBAL_THREADPOOL=1";
  EXPECT_THAT(ZygoteEnvironment(plain, OneDnn::kAuto),
              ElementsAre("A=1", "TF_ENABLE_ONEDNN_OPTS=1", threads, "TF_CPP_MIN_LOG_LEVEL=1"));
  EXPECT_THAT(ZygoteEnvironment(plain, OneDnn::kOff),
              ElementsAre("A=1", "TF_ENABLE_ONEDNN_OPTS=0", threads, "TF_CPP_MIN_LOG_LEVEL=1"));
  EXPECT_THAT(ZygoteEnvironment({"TF_CPP_MIN_LOG_LEVEL=0"}, OneDnn::kOn),
              ElementsAre("TF_CPP_MIN_LOG_LEVEL=0", "TF_ENABLE_ONEDNN_OPTS=1", threads));
}

TEST(Variable, IsFoundByItsWholeName) {
  const std::vector<std::string> environment = {"ABC=1", "AB=2=3"};
  EXPECT_EQ(Variable(environment, "AB"), "2=3");
  EXPECT_EQ(Variable(environment, "A"), "");
}

}  // namespace
}  // namespace tensord::supervisor
