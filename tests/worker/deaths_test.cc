// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "tests/worker/process_test.h"

namespace tensord::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DeathsTest : public ProcessTest {
 protected:
  // Nothing may stay behind: only the zygote is a child of this process then.
  void TearDown() override {
    if (HasFatalFailure() || IsSkipped()) return;
    EXPECT_THAT(Children(), ElementsAre(zygote().pid()));
  }

  // Asks the probe model for its own death, and gives the record that comes next.
  static absl::StatusOr<channel::ToFront> LastRecord(TestWorker* worker, const std::string& what,
                                                     const std::string& argument = "") {
    const tensor::Tensor word = Strings({1}, {what});
    const tensor::Tensor rest = Strings({1}, {argument});
    const absl::Status sent =
        worker->Send(channel::RunRecord{{worker->Prepare("serving_default", {&rest, &word})}});
    if (!sent.ok()) return sent;
    return worker->Receive();
  }
};

TEST_F(DeathsTest, AFatalSignalSaysItsLastWords) {
  const std::pair<const char*, int> kCases[] = {{"abort", SIGABRT}, {"segv", SIGSEGV}};
  for (const auto& [what, signal] : kCases) {
    const auto worker = Load("probe/1");
    ASSERT_NE(worker, nullptr);
    const auto last = LastRecord(worker.get(), what);
    ASSERT_TRUE(last.ok()) << what << ": " << last.status();
    ASSERT_TRUE(std::holds_alternative<channel::DyingRecord>(*last)) << what;
    EXPECT_EQ(std::get<channel::DyingRecord>(*last).signal, signal);
    EXPECT_TRUE(absl::IsUnavailable(worker->Receive().status()));
    const auto ended = worker->Wait();
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->signal, signal) << what;
  }
}

TEST_F(DeathsTest, ASignalFromOutsideSaysLastWordsToo) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    const auto worker = Load("half/1");
    ASSERT_NE(worker, nullptr);
    kill(worker->pid(), signal);
    const auto last = worker->Receive();
    ASSERT_TRUE(last.ok()) << last.status();
    ASSERT_TRUE(std::holds_alternative<channel::DyingRecord>(*last));
    EXPECT_EQ(std::get<channel::DyingRecord>(*last).signal, signal);
    EXPECT_EQ(worker->Wait()->signal, signal);
  }
}

TEST_F(DeathsTest, SigkillEndsTheChannelAndLeavesNothing) {
  const auto worker = Load("half/1");
  ASSERT_NE(worker, nullptr);
  kill(worker->pid(), SIGKILL);
  EXPECT_TRUE(absl::IsUnavailable(worker->Receive().status()));
  EXPECT_EQ(worker->Wait()->signal, SIGKILL);
}

TEST_F(DeathsTest, TheSignalsOfATerminalAreNotForWorkers) {
  const auto worker = Load("half/1");
  ASSERT_NE(worker, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    kill(worker->pid(), signal);
    kill(zygote().pid(), signal);
  }
  const tensor::Tensor x = Floats({2});
  EXPECT_THAT(Values<float>(Outputs(worker.get(), "serving_default", {&x})[0]), ElementsAre(3));
  EXPECT_NE(Fork(), nullptr);
}

TEST_F(DeathsTest, AClosedChannelEndsAWorkerInEveryPhase) {
  const auto young = Fork();
  ASSERT_NE(young, nullptr);
  young->CloseChannel();
  EXPECT_EQ(young->Wait()->code, 0);

  const auto loading = Fork();
  ASSERT_NE(loading, nullptr);
  ASSERT_TRUE(loading->Send(LoadOf("keras_mlp/1")).ok());
  loading->CloseChannel();
  EXPECT_EQ(loading->Wait()->code, 0);

  const auto idle = Load("half/1");
  ASSERT_NE(idle, nullptr);
  idle->CloseChannel();
  EXPECT_EQ(idle->Wait()->code, 0);

  // Also while every executor is in a run that never ends.
  channel::LoadRecord record = LoadOf("probe/1");
  record.executors = 1;
  const auto busy = Load(record);
  ASSERT_NE(busy, nullptr);
  const tensor::Tensor word = Strings({1}, {"spin"});
  const tensor::Tensor rest = Strings({1}, {""});
  ASSERT_TRUE(
      busy->Send(channel::RunRecord{{busy->Prepare("serving_default", {&rest, &word})}}).ok());
  busy->CloseChannel();
  const auto ended = busy->Wait();
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->exited);
}

TEST_F(DeathsTest, StopLetsRunsFinishAndExitsWithZero) {
  channel::LoadRecord record = LoadOf("sleep_ms/1");
  record.executors = 4;
  const auto worker = Load(record);
  ASSERT_NE(worker, nullptr);
  for (int i = 0; i < 3; ++i) {
    const tensor::Tensor ms = MakeTensor<int32_t>(tensor::DType::kInt32, {1}, {300 + i});
    channel::Run run = worker->Prepare("serving_default", {&ms}, static_cast<uint64_t>(i) * 64);
    run.response_offset = static_cast<uint64_t>(i) * 64;
    run.response_bytes = 64;
    ASSERT_TRUE(worker->Send(channel::RunRecord{{run}}).ok());
  }
  ASSERT_TRUE(worker->Send(channel::StopRecord{}).ok());
  for (int i = 0; i < 3; ++i) {
    const auto answer = worker->ReceiveCompletion();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(answer->completion.status.ok());
  }
  EXPECT_TRUE(absl::IsUnavailable(worker->Receive().status()));
  const auto ended = worker->Wait();
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->exited);
  EXPECT_EQ(ended->code, 0);
}

TEST_F(DeathsTest, HeartbeatsComeOnlyWhileARunIsOut) {
  const auto worker = Load("sleep_ms/1");
  ASSERT_NE(worker, nullptr);
  // Idle for a while: whatever comes now would be counted with the next record.
  EXPECT_TRUE(absl::IsDeadlineExceeded(worker->Receive(absl::Milliseconds(350)).status()));
  EXPECT_EQ(worker->heartbeats(), 0);
  const tensor::Tensor ms = MakeTensor<int32_t>(tensor::DType::kInt32, {1}, {1000});
  ASSERT_EQ(Outputs(worker.get(), "serving_default", {&ms}).size(), 1u);
  EXPECT_GE(worker->heartbeats(), 3);
  EXPECT_LE(worker->heartbeats(), 11);
}

TEST_F(DeathsTest, ARecordThatIsNoneEndsTheWorker) {
  const auto worker = Load("half/1");
  ASSERT_NE(worker, nullptr);
  ASSERT_TRUE(worker->SendBytes("this is no record").ok());
  EXPECT_TRUE(absl::IsUnavailable(worker->Receive().status()));
  const auto ended = worker->Wait();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code, 2);
  EXPECT_THAT(worker->Output(), HasSubstr("tensord-worker: "));
}

TEST_F(DeathsTest, AZygotesDeathHarmsNoWorker) {
  auto other = TestZygote::Start({});
  ASSERT_TRUE(other.ok()) << other.status();
  auto worker = (*other)->Fork();
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE((*worker)->Load(LoadOf("half/1")).ok());
  kill((*other)->pid(), SIGKILL);
  EXPECT_EQ(WaitFor((*other)->pid())->signal, SIGKILL);
  const tensor::Tensor x = Floats({2});
  EXPECT_THAT(Values<float>(Outputs(worker->get(), "serving_default", {&x})[0]), ElementsAre(3));
}

TEST_F(DeathsTest, AZygoteEndsWithItsFront) {
  auto other = TestZygote::Start({});
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Fork().ok());
  const auto ended = (*other)->Close();
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(ended->exited);
  EXPECT_EQ(ended->code, 0);
}

// A supervisor of its own, which dies by SIGKILL: neither zygote nor worker may survive it,
// although their channels stay open in a third process, as they do in a front.
TEST_F(DeathsTest, TheSupervisorsDeathEndsZygoteAndWorkers) {
  struct Pids {
    pid_t zygote = 0;
    pid_t worker = 0;
    pid_t front = 0;
  } pids;
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    auto zygote = TestZygote::Start({});
    auto worker = zygote.ok() ? (*zygote)->Fork() : zygote.status();
    if (worker.ok() && (*worker)->Load(LoadOf("half/1")).ok()) {
      pids = {.zygote = (*zygote)->pid(), .worker = (*worker)->pid(), .front = fork()};
    }
    if (pids.front != 0) {
      [[maybe_unused]] const ssize_t ignored = write(told[1], &pids, sizeof(pids));
    }
    while (true) pause();
  }
  close(told[1]);
  ASSERT_EQ(read(told[0], &pids, sizeof(pids)), static_cast<ssize_t>(sizeof(pids)));
  close(told[0]);
  ASSERT_GT(pids.front, 0);
  kill(supervisor, SIGKILL);
  EXPECT_TRUE(WaitFor(supervisor).has_value());
  // This process is a subreaper, too, so all of them now are its children.
  for (const pid_t pid : {pids.zygote, pids.worker}) {
    const auto ended = WaitFor(pid);
    ASSERT_TRUE(ended.has_value()) << pid << " lives on";
    EXPECT_EQ(ended->signal, SIGKILL);
  }
  kill(pids.front, SIGKILL);
  EXPECT_TRUE(WaitFor(pids.front).has_value());
}

}  // namespace
}  // namespace tensord::testing
