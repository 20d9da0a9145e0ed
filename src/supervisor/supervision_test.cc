// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/supervision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/limits.h"

namespace tensord::supervisor {
namespace {

using channel::ControlKind;
using channel::ControlRecord;
using channel::OneDnn;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::VariantWith;

constexpr pid_t kFront = 100;
constexpr pid_t kZygote = 200;
constexpr pid_t kWorker = 300;

// Wait statuses as the kernel makes them.
constexpr int Exited(int code) { return code << 8; }
constexpr int Killed(int signal) { return signal; }

auto Says(const std::string& words) {
  return VariantWith<Say>(Field(&Say::text, HasSubstr(words)));
}
template <typename T>
auto Does(T action) {
  return VariantWith<T>(action);
}

// A Supervision with its clock.
class SupervisionTest : public testing::Test {
 protected:
  std::vector<Action> On(const Event& event) { return supervision_.On(event, now_); }
  std::vector<Action> Ask(ControlKind kind, pid_t pid = 0) {
    ControlRecord record;
    record.kind = kind;
    record.pid = pid;
    record.runtime = 7;
    record.onednn = OneDnn::kOff;
    return On(FrontAsks{record});
  }
  void StartWithZygote() {
    On(Begin{});
    On(FrontStarted{kFront});
    On(ZygoteStarted{.runtime = 7, .pid = kZygote});
  }
  // Moves time to the next wake-up.
  std::vector<Action> Wake() {
    now_ = supervision_.Wake();
    return On(TimePassed{});
  }

  const absl::Duration drain_ = absl::Seconds(10);
  absl::Time now_ = absl::UnixEpoch();
  Supervision supervision_{drain_};
};

TEST_F(SupervisionTest, StartsTheFrontAndThenWaitsForEver) {
  EXPECT_THAT(On(Begin{}), ElementsAre(Does(StartFront{})));
  EXPECT_THAT(On(FrontStarted{kFront}), IsEmpty());
  EXPECT_EQ(supervision_.Wake(), absl::InfiniteFuture());
}

TEST_F(SupervisionTest, StartsZygotesForTheFront) {
  On(Begin{});
  On(FrontStarted{kFront});
  EXPECT_THAT(Ask(ControlKind::kStartZygote), ElementsAre(Does(StartZygote{7, OneDnn::kOff})));
  EXPECT_THAT(On(ZygoteStarted{.runtime = 7, .pid = kZygote}),
              ElementsAre(Does(
                  TellFront{.kind = ControlKind::kZygoteStarted, .pid = kZygote, .runtime = 7})));
  EXPECT_THAT(On(ZygoteNotStarted{.runtime = 8, .reason = "no memory"}),
              ElementsAre(Says("runtime 8 cannot be started: no memory"),
                          Does(TellFront{.kind = ControlKind::kProcessEnded,
                                         .wait_status = Exited(127),
                                         .runtime = 8})));
}

TEST_F(SupervisionTest, ReportsEndedAndStoppedProcessesToTheFront) {
  StartWithZygote();
  EXPECT_THAT(
      On(ChildEnded{kWorker, Killed(SIGKILL)}),
      ElementsAre(Does(TellFront{
          .kind = ControlKind::kProcessEnded, .pid = kWorker, .wait_status = Killed(SIGKILL)})));
  // Whoever stopped it: what it was to do is waited for.
  EXPECT_THAT(On(ChildStopped{kWorker}),
              ElementsAre(Does(TellFront{.kind = ControlKind::kProcessStopped, .pid = kWorker}),
                          Does(KillOne{kWorker})));
  EXPECT_THAT(On(ChildEnded{kZygote, Exited(1)}),
              ElementsAre(Says("the zygote of runtime 7 (process 200) ended: exit code 1"),
                          Does(TellFront{.kind = ControlKind::kProcessEnded,
                                         .pid = kZygote,
                                         .wait_status = Exited(1),
                                         .runtime = 7})));
}

TEST_F(SupervisionTest, AZygoteThatLeavesWhileItDrainsIsNoError) {
  StartWithZygote();
  On(StopSignal{SIGTERM});
  const auto told = [](int status) {
    return Does(TellFront{
        .kind = ControlKind::kProcessEnded, .pid = kZygote, .wait_status = status, .runtime = 7});
  };
  EXPECT_THAT(On(ChildEnded{kZygote, Exited(0)}), ElementsAre(told(Exited(0))));
}

TEST_F(SupervisionTest, AStoppedFrontIsKilledUnlessItGoesOn) {
  StartWithZygote();
  const auto stopped = [&] {
    EXPECT_THAT(On(ChildStopped{kFront}), ElementsAre(Says("is stopped and serves nothing"),
                                                      Does(TellFront{.kind = ControlKind::kPing})));
    EXPECT_EQ(supervision_.Wake() - now_, limits::kFrontStoppedMax);
  };
  stopped();
  EXPECT_THAT(Ask(ControlKind::kPong), IsEmpty());
  EXPECT_EQ(supervision_.Wake() - now_, limits::kFrontPingEvery);
  stopped();
  EXPECT_THAT(Wake(), Contains(Does(KillOne{kFront})));
  EXPECT_THAT(On(ChildEnded{kFront, Killed(SIGKILL)}), Contains(Says("starting it again")));
}

TEST_F(SupervisionTest, AFrontThatGivesNoSignOfLifeIsKilled) {
  StartWithZygote();
  EXPECT_EQ(supervision_.Wake(), absl::InfiniteFuture()) << "it may still read its files";
  Ask(ControlKind::kFrontReady);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Wake(), ElementsAre(Does(TellFront{.kind = ControlKind::kPing})));
    EXPECT_EQ(supervision_.Wake() - now_, limits::kFrontSilenceMax);
    EXPECT_THAT(Ask(ControlKind::kPong), IsEmpty());
  }
  Wake();
  EXPECT_THAT(Wake(), ElementsAre(Says("it gives no sign of life"), Does(KillOne{kFront})));
  EXPECT_THAT(On(ChildEnded{kFront, Killed(SIGKILL)}), Contains(Says("starting it again")));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(StartFront{.was_ready = true})));
  On(FrontStarted{kFront + 1});
  EXPECT_EQ(supervision_.Wake(), absl::InfiniteFuture());
}

TEST_F(SupervisionTest, AZygoteThatHangsIsKilledAndItsEndIsTold) {
  StartWithZygote();
  EXPECT_THAT(On(ChildStopped{kZygote}),
              ElementsAre(Says("the zygote of runtime 7 (process 200) was stopped by a signal"),
                          Does(TellFront{.kind = ControlKind::kProcessStopped, .pid = kZygote}),
                          Does(KillOne{kZygote})));
  EXPECT_THAT(Ask(ControlKind::kKillZygote, kZygote),
              ElementsAre(Says("does not answer"), Does(KillOne{kZygote})));
  for (const pid_t pid : {kFront, kWorker, 1, 0, -1}) {
    EXPECT_THAT(Ask(ControlKind::kKillZygote, pid), IsEmpty()) << pid;
  }
}

TEST_F(SupervisionTest, KillsOnlyWorkersForTheFront) {
  StartWithZygote();
  EXPECT_THAT(Ask(ControlKind::kKillWorker, kWorker), ElementsAre(Does(KillOne{kWorker})));
  for (const pid_t pid : {kFront, kZygote, 1, 0, -1}) {
    EXPECT_THAT(Ask(ControlKind::kKillWorker, pid), IsEmpty()) << pid;
  }
}

TEST_F(SupervisionTest, TellsTheServiceManagerOnceThatTheFrontIsReady) {
  StartWithZygote();
  EXPECT_THAT(Ask(ControlKind::kFrontReady), ElementsAre(Does(NotifyReady{})));
  EXPECT_THAT(Ask(ControlKind::kFrontReady), IsEmpty());
}

TEST_F(SupervisionTest, KillsAFrontThatSendsNonsense) {
  StartWithZygote();
  EXPECT_THAT(Ask(ControlKind::kForked),
              ElementsAre(Says("unknown kind 33"), Does(KillOne{kFront})));
  EXPECT_THAT(On(FrontMisbehaved{"it hangs"}),
              ElementsAre(Says("killing the front: it hangs"), Does(KillOne{kFront})));
}

TEST_F(SupervisionTest, StartsACondemnedFrontAgainEvenIfItEndedItself) {
  StartWithZygote();
  On(FrontMisbehaved{"it hangs"});
  // It saw its socket close, and was faster than the signal.
  EXPECT_THAT(
      On(ChildEnded{kFront, Exited(3)}),
      ElementsAre(Says("the front ended: exit code 3; starting it again"), Does(KillAll{})));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(StartFront{})));
  // The next one is innocent.
  On(FrontStarted{kFront});
  On(ChildEnded{kFront, Exited(3)});
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{3})));
}

TEST_F(SupervisionTest, ClearsAllAndStartsAgainWhenTheFrontCrashes) {
  StartWithZygote();
  EXPECT_THAT(On(ChildEnded{kFront, Killed(SIGSEGV)}),
              ElementsAre(Says("the front ended: killed by signal 11 (Segmentation fault)"),
                          Does(KillAll{})));
  // One that was being forked meanwhile must not survive.
  EXPECT_THAT(On(ChildEnded{kZygote, Killed(SIGKILL)}), ElementsAre(Does(KillAll{})));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(StartFront{})));
  EXPECT_THAT(On(FrontStarted{kFront + 1}), IsEmpty());
  // The new front is the front, and the dead zygote is forgotten.
  EXPECT_THAT(Ask(ControlKind::kKillWorker, kFront + 1), IsEmpty());
  EXPECT_THAT(Ask(ControlKind::kKillWorker, kZygote), ElementsAre(Does(KillOne{kZygote})));
}

TEST_F(SupervisionTest, WaitsLongerForEachCrashAndGivesUpInALoop) {
  On(Begin{});
  absl::Duration last_wait = absl::ZeroDuration();
  for (int death = 1; death <= limits::kFrontDeathsMax; ++death) {
    On(FrontStarted{kFront});
    On(ChildEnded{kFront, Killed(SIGABRT)});
    std::vector<Action> actions = On(AllGone{});
    if (death > 1) {
      EXPECT_THAT(actions, IsEmpty()) << death;
      EXPECT_GT(supervision_.Wake() - now_, last_wait) << death;
      last_wait = supervision_.Wake() - now_;
      actions = Wake();
    }
    EXPECT_THAT(actions, ElementsAre(Does(StartFront{}))) << death;
  }
  On(FrontStarted{kFront});
  EXPECT_THAT(On(ChildEnded{kFront, Killed(SIGABRT)}),
              ElementsAre(Says("the front ended 6 times within 60 s, last: killed by signal 6"),
                          Does(KillAll{})));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{1})));
  EXPECT_THAT(On(TimePassed{}), IsEmpty());
}

TEST_F(SupervisionTest, ForgetsCrashesOfLongAgo) {
  On(Begin{});
  for (int death = 0; death < 3 * limits::kFrontDeathsMax; ++death) {
    On(FrontStarted{kFront});
    On(ChildEnded{kFront, Killed(SIGSEGV)});
    EXPECT_THAT(On(AllGone{}), ElementsAre(Does(StartFront{}))) << death;
    now_ += limits::kFrontDeathsWindow;
  }
}

TEST_F(SupervisionTest, CountsAFrontThatCannotBeStartedAsACrash) {
  On(Begin{});
  for (int i = 0; i < limits::kFrontDeathsMax; ++i) {
    EXPECT_THAT(On(FrontNotStarted{"fork: no"}),
                ElementsAre(Says("the front ended: fork: no"), Does(KillAll{})));
    On(AllGone{});
    if (i > 0) Wake();
  }
  On(FrontNotStarted{"fork: no"});
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{1})));
}

TEST_F(SupervisionTest, PassesOnTheExitCodeOfAFrontThatEndsItself) {
  StartWithZygote();
  EXPECT_THAT(On(ChildEnded{kFront, Exited(255)}), ElementsAre(Does(KillAll{})));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{255})));
}

TEST_F(SupervisionTest, StartsAFrontAgainThatEndsItselfOnceTheServerHasServed) {
  StartWithZygote();
  Ask(ControlKind::kFrontReady);
  EXPECT_THAT(
      On(ChildEnded{kFront, Exited(255)}),
      ElementsAre(Says("the front ended: exit code 255; starting it again"), Does(KillAll{})));
  // It finds the sockets listening, and must not wait for every model.
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(StartFront{.was_ready = true})));
  // One that cannot start again is tried with pauses, not for ever.
  for (int death = 2; death <= limits::kFrontDeathsMax; ++death) {
    On(FrontStarted{kFront + death});
    On(ChildEnded{kFront + death, Exited(1)});
    EXPECT_THAT(On(AllGone{}), IsEmpty()) << death;
    EXPECT_THAT(Wake(), ElementsAre(Does(StartFront{.was_ready = true}))) << death;
  }
  On(FrontStarted{kFront});
  On(ChildEnded{kFront, Exited(1)});
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{1})));
}

TEST_F(SupervisionTest, StillPassesOnTheExitCodeOfADrainedFrontThatHasServed) {
  StartWithZygote();
  Ask(ControlKind::kFrontReady);
  On(StopSignal{SIGTERM});
  On(ChildEnded{kFront, Exited(0)});
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{0})));
}

TEST_F(SupervisionTest, DrainsOnTheFirstSignal) {
  StartWithZygote();
  EXPECT_THAT(On(StopSignal{SIGTERM}),
              ElementsAre(Does(NotifyStopping{}), Says("SIGTERM: finishing what is in flight"),
                          Does(TellFront{.kind = ControlKind::kDrain})));
  // Workers still come and go.
  EXPECT_THAT(On(ChildEnded{kWorker, Exited(0)}), ElementsAre(VariantWith<TellFront>(testing::_)));
  EXPECT_THAT(On(ChildEnded{kFront, Exited(0)}), ElementsAre(Does(KillAll{})));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{0})));
}

TEST_F(SupervisionTest, EndsWith1WhenTheFrontDoesNotFinishInTime) {
  StartWithZygote();
  On(StopSignal{SIGTERM});
  EXPECT_EQ(supervision_.Wake() - now_, drain_ + limits::kDrainMargin);
  EXPECT_THAT(Wake(), ElementsAre(Says("did not finish in the drain time"), Does(KillOne{kFront})));
  EXPECT_THAT(On(ChildEnded{kFront, Killed(SIGKILL)}), Contains(Does(KillAll{})));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{1})));
}

TEST_F(SupervisionTest, EndsWith128AndTheSignalWhenTheFrontCrashesWhileItDrains) {
  StartWithZygote();
  On(StopSignal{SIGTERM});
  EXPECT_THAT(On(ChildEnded{kFront, Killed(SIGSEGV)}),
              ElementsAre(Says("ended while it drained: killed by signal 11"), Does(KillAll{})));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{139})));
}

TEST_F(SupervisionTest, KillsAllAtTheSecondSignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    supervision_ = Supervision(drain_);
    StartWithZygote();
    On(StopSignal{SIGTERM});
    now_ += absl::Milliseconds(200);
    EXPECT_THAT(On(StopSignal{signal}), ElementsAre(Says("ending at once"), Does(KillAll{})));
    EXPECT_THAT(On(ChildEnded{kFront, Killed(SIGKILL)}), ElementsAre(Does(KillAll{})));
    EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{128 + signal})));
  }
}

TEST_F(SupervisionTest, TakesSignalsRightAfterTheFirstForTheSameOne) {
  StartWithZygote();
  On(StopSignal{SIGTERM});
  now_ += absl::Milliseconds(199);
  EXPECT_THAT(On(StopSignal{SIGTERM}), IsEmpty()) << "timeout(1) sends two";
  EXPECT_THAT(On(StopSignal{SIGINT}), IsEmpty());
  On(ChildEnded{kFront, Exited(0)});
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{0})));
}

TEST_F(SupervisionTest, DoesNotWaitForProcessesAtTheThirdSignal) {
  StartWithZygote();
  for (int i = 0; i < 3; ++i) {
    On(StopSignal{SIGINT});
    now_ += absl::Milliseconds(200);
  }
  now_ -= absl::Milliseconds(200);
  EXPECT_EQ(supervision_.Wake(), now_);
  EXPECT_THAT(On(TimePassed{}), ElementsAre(Says("do not end"), Does(Exit{130})));
}

TEST_F(SupervisionTest, EndsWith0WhenTheSignalComesBetweenTwoFronts) {
  StartWithZygote();
  On(ChildEnded{kFront, Killed(SIGSEGV)});
  EXPECT_THAT(On(StopSignal{SIGTERM}), ElementsAre(Does(NotifyStopping{})));
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{0})));

  supervision_ = Supervision(drain_);
  On(Begin{});
  for (int i = 0; i < 2; ++i) {
    On(FrontStarted{kFront});
    On(ChildEnded{kFront, Killed(SIGSEGV)});
    On(AllGone{});
  }
  EXPECT_THAT(On(StopSignal{SIGTERM}), ElementsAre(Does(NotifyStopping{}), Does(Exit{0})));
}

TEST_F(SupervisionTest, KeepsTheCodeOfACrashLoopWhenASignalComesToo) {
  On(Begin{});
  for (int death = 0; death <= limits::kFrontDeathsMax; ++death) {
    On(FrontStarted{kFront});
    On(ChildEnded{kFront, Killed(SIGABRT)});
    if (death == limits::kFrontDeathsMax) break;
    On(AllGone{});
    if (death > 0) Wake();
  }
  On(StopSignal{SIGTERM});
  EXPECT_THAT(On(AllGone{}), ElementsAre(Does(Exit{1})));
}

TEST_F(SupervisionTest, KillsAFrontThatHungUpAndStayed) {
  StartWithZygote();
  EXPECT_THAT(On(FrontHungUp{}), IsEmpty());
  EXPECT_THAT(Wake(),
              ElementsAre(Says("closed its socket and did not end"), Does(KillOne{kFront})));
  // That is a crash.
  EXPECT_THAT(On(ChildEnded{kFront, Killed(SIGKILL)}), Contains(Says("starting it again")));
}

TEST_F(SupervisionTest, GoesOnWithoutProcessesThatCannotBeKilled) {
  StartWithZygote();
  On(ChildEnded{kFront, Killed(SIGSEGV)});
  EXPECT_EQ(supervision_.Wake() - now_, limits::kKillWaitMax);
  EXPECT_THAT(Wake(),
              ElementsAre(Says("do not end although they were killed"), Does(StartFront{})));
}

TEST_F(SupervisionTest, LosesNoReloadThatNoFrontWasDoneWith) {
  const TellFront reload{.kind = ControlKind::kReload};
  StartWithZygote();
  EXPECT_THAT(On(ReloadSignal{}), ElementsAre(Does(reload)));
  EXPECT_THAT(Ask(ControlKind::kReloaded), IsEmpty());
  On(ChildEnded{kFront, Killed(SIGSEGV)});
  On(AllGone{});
  EXPECT_THAT(On(FrontStarted{kFront}), IsEmpty()) << "that one was done";
  // One front dies of two, and a third comes between two fronts: the next reads all once.
  On(ReloadSignal{});
  On(ReloadSignal{});
  On(ChildEnded{kFront, Killed(SIGSEGV)});
  EXPECT_THAT(On(ReloadSignal{}), IsEmpty());
  On(AllGone{});
  Wake();
  EXPECT_THAT(On(FrontStarted{kFront}), ElementsAre(Does(reload)));
  Ask(ControlKind::kReloaded);
  On(ChildEnded{kFront, Killed(SIGSEGV)});
  On(AllGone{});
  Wake();
  EXPECT_THAT(On(FrontStarted{kFront}), IsEmpty());
}

TEST_F(SupervisionTest, LetsTheFrontKeepThings) {
  StartWithZygote();
  EXPECT_THAT(Ask(ControlKind::kKeep), IsEmpty());
}

TEST(DescribeEnd, TellsSignalsFromExitCodes) {
  EXPECT_EQ(DescribeEnd(Exited(3)), "exit code 3");
  EXPECT_EQ(DescribeEnd(Killed(9)), "killed by signal 9 (Killed)");
  EXPECT_EQ(DescribeEnd(Killed(11) | 0x80),
            "killed by signal 11 (Segmentation fault), core dumped");
}

}  // namespace
}  // namespace tensord::supervisor
