// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// The fleet with a supervisor, zygotes and worker processes that the test plays.

#include "fleet/fleet.h"

#include <errno.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "fleet/control_io.h"
#include "fleet/testing/worker_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::fleet {
namespace {

using channel::ControlKind;
using channel::ControlRecord;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What an observer was told; outlives the observer.
struct Told {
  int loads = 0;
  int ends = 0;
  WorkerObserver::End end{};
  absl::Status reason;
  Worker* worker = nullptr;
};

class ToldObserver final : public WorkerObserver {
 public:
  explicit ToldObserver(Told* told) : told_(told) {}
  void OnLoaded(WorkerHandle& worker, const engine::ModelInfo&) override {
    ++told_->loads;
    told_->worker = &worker;
  }
  void OnFree() override {}
  void OnEnded(WorkerHandle*, End end, const absl::Status& reason) override {
    ++told_->ends;
    told_->end = end;
    told_->reason = reason;
    told_->worker = nullptr;
  }

 private:
  Told* const told_;
};

// A kFork as the zygote got it.
struct Forked {
  ControlRecord record;
  std::vector<base::UniqueFd> descriptors;
};

class FleetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    loop_ = *loop::EventLoop::Create(clock_);
    auto pair = *channel::PacketSocket::Pair();
    pair.second.SetNonBlocking();
    supervisor_end_.emplace(std::move(pair.second));
    supervisor_ = std::make_unique<SupervisorClient>(
        *loop_, base::UniqueFd(dup(pair.first.fd())),
        [this](const ControlRecord& record, base::UniqueFd fd) {
          fleet_->OnSupervisor(record, std::move(fd));
        },
        [this] { ++supervisor_gone_; });
    fleet_ = std::make_unique<Fleet>(*loop_, supervisor_.get(),
                                     [this](const WorkerKey& key, std::string_view line) {
                                       lines_.push_back(base::Cat(ToString(key), ": ", line));
                                     });
  }
  void TearDown() override {
    fleet_.reset();
    supervisor_.reset();
  }

  void Turn() {
    for (int i = 0; i < 8; ++i) loop_->RunOnce(clock_.Now());
  }
  void Advance(absl::Duration by) {
    const absl::Time end = clock_.Now() + by;
    while (clock_.Now() < end) {
      clock_.Advance(std::min(absl::Milliseconds(50), end - clock_.Now()));
      Turn();
    }
  }

  Told* Launch(const WorkerKey& key) {
    LaunchSpec spec;
    spec.key = key;
    spec.load.model = key.model;
    spec.load.version = key.version;
    Told* told = told_.emplace_back(std::make_unique<Told>()).get();
    fleet_->Launch(std::move(spec), *loop_, std::make_unique<ToldObserver>(told));
    Turn();
    return told;
  }

  // What the supervisor was asked, in order.
  std::vector<ControlRecord> Asked() {
    Turn();
    std::vector<ControlRecord> asked;
    while (true) {
      const auto packet = supervisor_end_->Receive(sizeof(ControlRecord), 0);
      if (!packet.ok()) return asked;
      ControlRecord& record = asked.emplace_back();
      EXPECT_EQ(packet->bytes.size(), sizeof(record));
      std::memcpy(&record, packet->bytes.data(), sizeof(record));
    }
  }
  std::vector<ControlKind> AskedKinds() {
    std::vector<ControlKind> kinds;
    for (const ControlRecord& record : Asked()) kinds.push_back(record.kind);
    return kinds;
  }
  void Tell(ControlRecord record, const std::vector<int>& descriptors = {}) {
    ASSERT_TRUE(SendControl(*supervisor_end_, record, descriptors).ok());
    Turn();
  }
  void TellEnded(int pid, int wait_status, uint32_t runtime = 0) {
    ControlRecord record;
    record.kind = ControlKind::kProcessEnded;
    record.pid = pid;
    record.wait_status = wait_status;
    record.runtime = runtime;
    Tell(record);
  }

  // Starts the zygote that was asked for.
  void StartZygote(int pid, uint32_t runtime = 0) {
    auto pair = *channel::PacketSocket::Pair();
    pair.second.SetNonBlocking();
    ControlRecord record;
    record.kind = ControlKind::kZygoteStarted;
    record.pid = pid;
    record.runtime = runtime;
    Tell(record, {pair.first.fd()});
    zygote_.emplace(std::move(pair.second));
  }
  void EndZygote(int pid) {
    zygote_.reset();
    TellEnded(pid, 9);
  }
  std::optional<Forked> HearFork() {
    Turn();
    auto packet = zygote_->Receive(sizeof(ControlRecord), 5);
    if (!packet.ok()) return std::nullopt;
    Forked forked;
    std::memcpy(&forked.record, packet->bytes.data(), sizeof(forked.record));
    forked.descriptors = std::move(packet->descriptors);
    EXPECT_EQ(forked.record.kind, ControlKind::kFork);
    EXPECT_THAT(forked.descriptors, SizeIs(5));
    return forked;
  }
  void SayForked(const Forked& fork, int pid) {
    ControlRecord record;
    record.kind = ControlKind::kForked;
    record.request = fork.record.request;
    record.pid = pid;
    ASSERT_TRUE(SendControl(*zygote_, record).ok());
    Turn();
  }
  static std::unique_ptr<FakeProcess> Become(Forked& fork) {
    channel::PacketSocket socket(std::move(fork.descriptors[0]));
    socket.SetNonBlocking();
    return std::make_unique<FakeProcess>(std::move(socket), fork.descriptors[1].get(),
                                         fork.descriptors[2].get(), fork.record.incarnation);
  }
  // From Launch to a loaded model, in a process of that pid.
  std::unique_ptr<FakeProcess> Load(int pid) {
    std::optional<Forked> fork = HearFork();
    EXPECT_TRUE(fork.has_value());
    std::unique_ptr<FakeProcess> process = Become(*fork);
    out_ = std::move(fork->descriptors[3]);
    SayForked(*fork, pid);
    process->SayLoaded();
    Turn();
    process->HearA<channel::LoadRecord>();
    return process;
  }

  HandClock clock_;
  std::unique_ptr<loop::EventLoop> loop_;
  std::optional<channel::PacketSocket> supervisor_end_;
  std::optional<channel::PacketSocket> zygote_;
  std::unique_ptr<SupervisorClient> supervisor_;
  std::unique_ptr<Fleet> fleet_;
  std::vector<std::unique_ptr<Told>> told_;
  std::vector<std::string> lines_;
  base::UniqueFd out_;
  int supervisor_gone_ = 0;
};

const WorkerKey kHalf{.model = "half", .version = 3};
const WorkerKey kOther{.model = "other", .version = 1};

TEST_F(FleetTest, AsksForAZygoteAndForksFromIt) {
  Told* told = Launch(kHalf);
  EXPECT_THAT(AskedKinds(), ElementsAre(ControlKind::kStartZygote));
  StartZygote(100);
  const auto process = Load(200);
  EXPECT_EQ(told->loads, 1);
  EXPECT_THAT(fleet_->pids(), ElementsAre(std::pair(kHalf, 200)));
}

TEST_F(FleetTest, ForksAllWorkersOfARuntimeFromOneZygote) {
  Launch(kHalf);
  Launch(kOther);
  EXPECT_THAT(AskedKinds(), ElementsAre(ControlKind::kStartZygote));
  StartZygote(100);
  Load(200);
  Load(201);
  EXPECT_THAT(fleet_->pids(), SizeIs(2));
}

TEST_F(FleetTest, AsksForOneZygoteForEachRuntime) {
  WorkerKey other = kOther;
  other.runtime = 1;
  Launch(kHalf);
  Launch(other);
  const std::vector<ControlRecord> asked = Asked();
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].runtime, 0u);
  EXPECT_EQ(asked[1].runtime, 1u);
}

TEST_F(FleetTest, StopsAWorkerAndForgetsIt) {
  Told* told = Launch(kHalf);
  StartZygote(100);
  const auto process = Load(200);
  fleet_->Stop(kHalf);
  Turn();
  process->HearA<channel::StopRecord>();
  process->Close();
  TellEnded(200, 0);
  EXPECT_EQ(told->ends, 1);
  EXPECT_EQ(told->end, WorkerObserver::End::kStopped);
  EXPECT_THAT(fleet_->pids(), IsEmpty());
  Told* again = Launch(kHalf);
  Load(201);
  EXPECT_EQ(again->loads, 1);
}

TEST_F(FleetTest, AnEndHeardBeforeTheForkIsNotLost) {
  Told* told = Launch(kHalf);
  StartZygote(100);
  const std::optional<Forked> fork = HearFork();
  ASSERT_TRUE(fork.has_value());
  TellEnded(200, 11);
  EXPECT_EQ(told->ends, 0);
  SayForked(*fork, 200);
  EXPECT_EQ(told->ends, 1);
  EXPECT_EQ(told->end, WorkerObserver::End::kDied);
  EXPECT_THAT(std::string(base::Message(told->reason)), HasSubstr("SIGSEGV"));
}

TEST_F(FleetTest, AnEndOfLongAgoIsNotThatOfANewProcessWithItsPid) {
  TellEnded(200, 9);
  Told* told = Launch(kHalf);
  StartZygote(100);
  Load(200);
  EXPECT_EQ(told->loads, 1);
  EXPECT_EQ(told->ends, 0);
}

TEST_F(FleetTest, AStoppedWorkerIsKilledByItsPid) {
  Launch(kHalf);
  StartZygote(100);
  const auto process = Load(200);
  Asked();
  ControlRecord stopped;
  stopped.kind = ControlKind::kProcessStopped;
  stopped.pid = 200;
  Tell(stopped);
  const std::vector<ControlRecord> asked = Asked();
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked[0].kind, ControlKind::kKillWorker);
  EXPECT_EQ(asked[0].pid, 200);
}

TEST_F(FleetTest, AWorkerNotWantedBeforeItsForkIsNeverForked) {
  Told* told = Launch(kHalf);
  fleet_->Stop(kHalf);
  Turn();
  EXPECT_EQ(told->ends, 1);
  EXPECT_EQ(told->end, WorkerObserver::End::kStopped);
  StartZygote(100);
  EXPECT_FALSE(HearFork().has_value());
}

TEST_F(FleetTest, AWorkerNotWantedWhileItForksIsKilledAfterwards) {
  Told* told = Launch(kHalf);
  StartZygote(100);
  const std::optional<Forked> fork = HearFork();
  ASSERT_TRUE(fork.has_value());
  fleet_->Stop(kHalf);
  Asked();
  SayForked(*fork, 200);
  const std::vector<ControlRecord> asked = Asked();
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked[0].pid, 200);
  TellEnded(200, 9);
  EXPECT_EQ(told->end, WorkerObserver::End::kStopped);
  EXPECT_EQ(told->ends, 1);
}

TEST_F(FleetTest, AForkThatFailsSaysWhy) {
  Told* told = Launch(kHalf);
  StartZygote(100);
  const std::optional<Forked> fork = HearFork();
  ASSERT_TRUE(fork.has_value());
  ControlRecord record;
  record.kind = ControlKind::kForkFailed;
  record.request = fork->record.request;
  record.error = EAGAIN;
  ASSERT_TRUE(SendControl(*zygote_, record).ok());
  Turn();
  EXPECT_EQ(told->ends, 1);
  EXPECT_EQ(told->reason.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FleetTest, ADeadZygoteIsStartedAgainAndHarmsNoWorker) {
  Told* told = Launch(kHalf);
  StartZygote(100);
  const auto process = Load(200);
  Asked();
  zygote_.reset();
  TellEnded(100, 9);
  EXPECT_THAT(AskedKinds(), IsEmpty());
  Advance(limits::kZygoteRestartFirst);
  EXPECT_THAT(AskedKinds(), ElementsAre(ControlKind::kStartZygote));
  EXPECT_EQ(told->ends, 0);
  StartZygote(101);
  Told* next = Launch(kOther);
  Load(201);
  EXPECT_EQ(next->loads, 1);
}

TEST_F(FleetTest, AForkThatAZygoteDiedInIsAskedOfTheNextOne) {
  Told* told = Launch(kHalf);
  StartZygote(100);
  std::optional<Forked> first = HearFork();
  ASSERT_TRUE(first.has_value());
  const auto lost = Become(*first);
  EndZygote(100);
  Advance(limits::kZygoteRestartFirst);
  StartZygote(101);
  const auto process = Load(200);
  EXPECT_EQ(told->loads, 1);
  EXPECT_EQ(told->ends, 0);
  EXPECT_THAT(fleet_->pids(), ElementsAre(std::pair(kHalf, 200)));
  // Should the first fork have come to life all the same, it has nobody to talk to.
  EXPECT_NE(lost->incarnation(), process->incarnation());
  EXPECT_FALSE(lost->Hear().has_value());
  EXPECT_TRUE(lost->front_gone());
  fleet_->Stop(kHalf);
  Turn();
  process->HearA<channel::StopRecord>();
  TellEnded(200, 0);
  EXPECT_EQ(told->end, WorkerObserver::End::kStopped);
  EXPECT_EQ(told->ends, 1);
}

TEST_F(FleetTest, AForkThatEveryZygoteDiesInEndsForItsObserver) {
  Told* told = Launch(kHalf);
  for (int i = 0; i < limits::kForkTriesMax; ++i) {
    EXPECT_EQ(told->ends, 0);
    StartZygote(100 + i);
    ASSERT_TRUE(HearFork().has_value());
    EndZygote(100 + i);
    Advance(absl::Seconds(1));
  }
  EXPECT_EQ(told->ends, 1);
  EXPECT_EQ(told->end, WorkerObserver::End::kDied);
  EXPECT_EQ(told->reason.code(), absl::StatusCode::kUnavailable);
}

TEST_F(FleetTest, AForkThatIsNotWantedAnyMoreIsNotAskedAgain) {
  Told* told = Launch(kHalf);
  StartZygote(100);
  ASSERT_TRUE(HearFork().has_value());
  fleet_->Stop(kHalf);
  EndZygote(100);
  EXPECT_EQ(told->ends, 1);
  EXPECT_EQ(told->end, WorkerObserver::End::kStopped);
}

TEST_F(FleetTest, AZygoteThatDoesNotAnswerIsKilled) {
  Launch(kHalf);
  StartZygote(100);
  const auto process = Load(200);
  Launch(kOther);
  const std::optional<Forked> fork = HearFork();
  ASSERT_TRUE(fork.has_value());
  Asked();
  Advance(limits::kForkWaitMax - absl::Seconds(1));
  EXPECT_THAT(AskedKinds(), IsEmpty());
  Advance(absl::Seconds(1));
  const std::vector<ControlRecord> asked = Asked();
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].kind, ControlKind::kKillZygote);
  EXPECT_EQ(asked[0].pid, 100);
}

TEST_F(FleetTest, AZygoteThatStillMapsItsLibrariesHasMoreTime) {
  Launch(kHalf);
  StartZygote(100);
  const std::optional<Forked> fork = HearFork();
  ASSERT_TRUE(fork.has_value());
  Asked();
  Advance(2 * limits::kForkWaitMax);
  EXPECT_THAT(AskedKinds(), IsEmpty());
  Advance(limits::kZygoteStartMax);
  EXPECT_THAT(AskedKinds(), ::testing::Contains(ControlKind::kKillZygote));
}

TEST_F(FleetTest, AZygoteThatNeverStaysAliveIsRetriedAndThenSaid) {
  Told* told = Launch(kHalf);
  int starts = 0;
  for (int i = 0; i < limits::kZygoteTriesMax; ++i) {
    for (const ControlKind kind : AskedKinds()) starts += kind == ControlKind::kStartZygote ? 1 : 0;
    EXPECT_EQ(told->ends, 0);
    TellEnded(0, 256);
    Advance(absl::Seconds(5));
  }
  EXPECT_EQ(starts, limits::kZygoteTriesMax);
  EXPECT_EQ(told->ends, 1);
  EXPECT_THAT(std::string(base::Message(told->reason)), HasSubstr("does not stay alive"));
}

TEST_F(FleetTest, AFailedLoadEndsTheWorkerForItsObserverOnce) {
  Told* told = Launch(kHalf);
  StartZygote(100);
  std::optional<Forked> fork = HearFork();
  ASSERT_TRUE(fork.has_value());
  const auto process = Become(*fork);
  SayForked(*fork, 200);
  process->Say(channel::HelloRecord{});
  process->Say(channel::LoadFailedRecord{.status = absl::NotFoundError("no such tag")});
  Turn();
  TellEnded(200, 256);
  EXPECT_EQ(told->ends, 1);
  EXPECT_EQ(told->end, WorkerObserver::End::kLoadFailed);
  EXPECT_EQ(told->reason, absl::NotFoundError("no such tag"));
}

TEST_F(FleetTest, WhatAWorkerPrintsIsRelabelled) {
  Launch(kHalf);
  StartZygote(100);
  const auto process = Load(200);
  ASSERT_GT(write(out_.get(), "one\ntwo", 7), 0);
  Turn();
  EXPECT_THAT(lines_, ElementsAre("half/3#0: one"));
  out_.Reset();
  Turn();
  EXPECT_THAT(lines_, ElementsAre("half/3#0: one", "half/3#0: two"));
}

TEST_F(FleetTest, LastWordsAreReadBeforeAWorkerIsForgotten) {
  Launch(kHalf);
  StartZygote(100);
  const auto process = Load(200);
  process->Close();
  ASSERT_GT(write(out_.get(), "F: check failed", 15), 0);
  TellEnded(200, 6);
  EXPECT_THAT(lines_, ElementsAre("half/3#0: F: check failed"));
}

TEST_F(FleetTest, ASupervisorThatIsGoneIsSaidOnce) {
  supervisor_end_.reset();
  Turn();
  Turn();
  EXPECT_EQ(supervisor_gone_, 1);
}

}  // namespace
}  // namespace tensord::fleet
