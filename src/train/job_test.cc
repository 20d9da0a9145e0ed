// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace tensord::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A job and a clock that moves when told to; keeps what the last event brought about.
class Fixture {
 public:
  explicit Fixture(Policy policy) : job_(std::move(policy), now_) {}

  void On(Event event) { actions_ = job_.On(event, now_); }
  void From(NodeId node, Report report) { On(FromNode{node, std::move(report)}); }
  void Join(NodeId node, std::string host, int ranks, int node_rank = -1) {
    Joined joined{.address = host, .node_rank = node_rank, .ranks = ranks};
    joined.facts.host = host;
    From(node, joined);
  }
  void Pass(absl::Duration time) {
    now_ += time;
    On(TimePassed{});
  }
  // One machine with two ranks, until they run.
  void StartTwo() {
    Join(0, "a", 2);
    From(0, Ready{.generation = generation(), .ports = {"1", "2"}});
  }
  void EndRank(int rank, RankEnd end) {
    end.rank = rank;
    From(0, RankEnded{generation(), end});
  }
  void Gone(NodeId node = 0) { From(node, RanksGone{generation()}); }
  // Both ranks of StartTwo end; the first at fault.
  void FailOnce(RankEnd end) {
    EndRank(1, std::move(end));
    EndRank(0, {.signal = SIGKILL, .by_us = true});
    Gone();
  }

  template <typename Wanted>
  std::vector<std::pair<NodeId, Wanted>> Told() const {
    std::vector<std::pair<NodeId, Wanted>> told;
    for (const Action& action : actions_) {
      const auto* tell = std::get_if<Tell>(&action);
      if (tell == nullptr) continue;
      if (const auto* wanted = std::get_if<Wanted>(&tell->command)) {
        told.emplace_back(tell->node, *wanted);
      }
    }
    return told;
  }
  // -1 while it goes on.
  int Code() const {
    for (const Action& action : actions_) {
      if (const auto* end = std::get_if<End>(&action)) return end->code;
    }
    return -1;
  }
  std::string Words() const {
    std::string words;
    for (const Action& action : actions_) {
      if (const auto* say = std::get_if<Say>(&action)) words += say->text + "\n";
      if (const auto* print = std::get_if<Print>(&action)) words += print->text;
    }
    return words;
  }
  int generation() const { return generation_; }
  void NextGeneration() { ++generation_; }

 private:
  absl::Time now_ = absl::UnixEpoch();
  Job job_;
  std::vector<Action> actions_;
  int generation_ = 1;
};

Policy Standalone(int restarts = 0) { return {.restarts_max = restarts, .run_id = "r"}; }

TEST(Job, OneMachineStartsItsRanksWithTheirReservedPorts) {
  Fixture f(Standalone());
  f.Join(0, "a", 2);
  EXPECT_EQ(f.Told<Prepare>().size(), 1u);
  f.From(0, Ready{.generation = 1, .ports = {"5", "6"}});
  const auto started = f.Told<StartRanks>();
  ASSERT_EQ(started.size(), 1u);
  EXPECT_THAT(started[0].second.addresses, ElementsAre("a:5", "a:6"));
}

TEST(Job, AllWellIsSuccess) {
  Fixture f(Standalone());
  f.StartTwo();
  f.EndRank(0, {});
  f.EndRank(1, {});
  EXPECT_EQ(f.Code(), -1) << "helpers of the ranks may still run";
  f.Gone();
  EXPECT_EQ(f.Code(), 0);
}

TEST(Job, TheFirstFailureStopsTheOthersAndItsCodeIsTheJobs) {
  Fixture f(Standalone());
  f.StartTwo();
  f.EndRank(1, {.code = 3});
  const auto stopped = f.Told<StopRanks>();
  ASSERT_EQ(stopped.size(), 1u);
  EXPECT_EQ(stopped[0].second.signal, SIGTERM);
  EXPECT_EQ(stopped[0].second.grace_ms, 10'000);
  f.EndRank(0, {.code = 1, .trouble = Trouble::kEcho});
  f.Gone();
  EXPECT_EQ(f.Code(), 3);
  EXPECT_THAT(f.Words(), HasSubstr("first failure: worker/1, exit 3"));
  EXPECT_THAT(f.Words(), HasSubstr("worker/0: exit 1 (echo of the loss)"));
}

TEST(Job, DeathByASignalGives128AndTheSignal) {
  Fixture f(Standalone());
  f.StartTwo();
  f.FailOnce({.signal = SIGKILL});
  EXPECT_EQ(f.Code(), 137);
}

TEST(Job, RestartsAllWithBackOffAndNewPortsUntilTheRestartsAreUsedUp) {
  Fixture f(Standalone(2));
  f.StartTwo();
  f.FailOnce({.code = 1});
  EXPECT_EQ(f.Code(), -1);
  EXPECT_TRUE(f.Told<Prepare>().empty()) << "not before the back-off";
  f.Pass(absl::Seconds(1));
  EXPECT_EQ(f.Told<Prepare>().size(), 1u);
  f.NextGeneration();
  f.From(0, Ready{.generation = 2, .ports = {"7", "8"}});
  EXPECT_EQ(f.Told<StartRanks>().at(0).second.restarts, 1);
  EXPECT_THAT(f.Told<StartRanks>().at(0).second.addresses, ElementsAre("a:7", "a:8"));
  f.FailOnce({.code = 1});
  f.Pass(absl::Seconds(1));
  EXPECT_TRUE(f.Told<Prepare>().empty()) << "the second wait is longer";
  f.Pass(absl::Seconds(1));
  EXPECT_EQ(f.Told<Prepare>().size(), 1u);
  f.NextGeneration();
  f.From(0, Ready{.generation = 3, .ports = {"7", "8"}});
  f.FailOnce({.code = 1});
  EXPECT_EQ(f.Code(), 1);
  EXPECT_THAT(f.Words(), HasSubstr("all 2 restarts are used up"));
}

TEST(Job, Exit42And143AskForARestartThatDoesNotCount) {
  for (const int code : {42, 143}) {
    Fixture f(Standalone(0));
    f.StartTwo();
    f.EndRank(1, {.code = code});
    EXPECT_EQ(f.Told<StopRanks>().at(0).second.signal, 0) << "the others save and end themselves";
    f.EndRank(0, {.code = code});
    f.Gone();
    EXPECT_EQ(f.Code(), -1);
    EXPECT_THAT(f.Words(), HasSubstr("not counted"));
    f.Pass(absl::Seconds(1));
    EXPECT_EQ(f.Told<Prepare>().size(), 1u);
  }
}

TEST(Job, WithRestartOnSignalsAScriptErrorIsFinal) {
  Policy policy = Standalone(5);
  policy.restart_on_any = false;
  Fixture f(policy);
  f.StartTwo();
  f.FailOnce({.code = 1});
  EXPECT_EQ(f.Code(), 1);
}

TEST(Job, AfterAHealthyTimeEarlierRestartsDoNotCount) {
  Fixture f(Standalone(1));
  f.StartTwo();
  f.FailOnce({.code = 1});
  f.Pass(absl::Seconds(1));
  f.NextGeneration();
  f.From(0, Ready{.generation = 2, .ports = {"7", "8"}});
  f.Pass(absl::Minutes(11));
  f.FailOnce({.code = 1});
  EXPECT_EQ(f.Code(), -1);
}

TEST(Job, AStolenPortRestartsWithoutCounting) {
  Fixture f(Standalone(0));
  f.StartTwo();
  f.FailOnce({.code = 1, .port_stolen = true});
  EXPECT_EQ(f.Code(), -1);
  EXPECT_THAT(f.Words(), HasSubstr("port"));
}

TEST(Job, AStuckRankBringsStacksThenAStopThenARestart) {
  Fixture f(Standalone(1));
  f.StartTwo();
  f.From(0, RankStuck{1, 1, "is stopped (SIGSTOP) for 10 s"});
  EXPECT_EQ(f.Told<DumpStacks>().size(), 1u);
  EXPECT_THAT(f.Words(), HasSubstr("worker/1 is stopped"));
  f.Pass(absl::Seconds(3));
  EXPECT_EQ(f.Told<StopRanks>().size(), 1u);
  f.EndRank(0, {.signal = SIGKILL, .by_us = true});
  f.EndRank(1, {.signal = SIGKILL, .by_us = true});
  f.Gone();
  EXPECT_THAT(f.Words(), HasSubstr("restart 1 (1 of 1 counted)"));
}

TEST(Job, ARankThatMayBeAtWorkIsNamedAndGoesOn) {
  Fixture f(Standalone(0));
  f.StartTwo();
  f.From(0, RankStuck{.generation = 1,
                      .rank = 1,
                      .why = "has not made its first step, and no rank moved for 600 s",
                      .perhaps_at_work = true});
  EXPECT_THAT(f.Words(), HasSubstr("worker/1 has not made its first step"));
  EXPECT_THAT(f.Words(), HasSubstr("--hang-timeout"));
  f.Pass(absl::Hours(1));
  EXPECT_EQ(f.Told<DumpStacks>().size() + f.Told<StopRanks>().size(), 0u);
  f.EndRank(0, {});
  f.EndRank(1, {});
  f.Gone();
  EXPECT_EQ(f.Code(), 0);
}

TEST(Job, AStopSignalPassesOnAndASecondOneDoesNotWait) {
  Fixture f(Standalone(5));
  f.StartTwo();
  f.On(StopRequested{SIGINT});
  EXPECT_EQ(f.Told<StopRanks>().at(0).second.signal, SIGINT);
  f.On(StopRequested{SIGINT});
  EXPECT_EQ(f.Told<StopRanks>().at(0).second.signal, SIGKILL);
  f.EndRank(0, {.signal = SIGKILL, .by_us = true});
  f.EndRank(1, {.signal = SIGKILL, .by_us = true});
  f.Gone();
  EXPECT_EQ(f.Code(), 130);
}

TEST(Job, WithParameterServersTheChiefDecidesAndTheServersAreEnded) {
  Policy policy = Standalone();
  policy.mode = Mode::kParameterServer;
  policy.parameter_servers = 1;
  Fixture f(policy);
  f.Join(0, "a", 3);
  f.From(0, Ready{.generation = 1, .ports = {"1", "2", "3"}});
  f.EndRank(0, {});
  EXPECT_EQ(f.Told<StopRanks>().size(), 1u);
  f.EndRank(1, {.signal = SIGTERM, .by_us = true});
  f.EndRank(2, {.signal = SIGTERM, .by_us = true});
  f.Gone();
  EXPECT_EQ(f.Code(), 0);
}

// ---- Several machines ---------------------------------------------------------------------------

Policy TwoMachines(int restarts = 1) {
  return {.nodes_min = 2, .nodes_max = 2, .restarts_max = restarts, .run_id = "r"};
}

void StartBoth(Fixture* f) {
  f->From(0, Ready{.generation = f->generation(), .ports = {"1"}});
  f->From(7, Ready{.generation = f->generation(), .ports = {"2"}});
  f->From(0, Probed{.generation = f->generation()});
  f->From(7, Probed{.generation = f->generation()});
}

TEST(Job, MachinesMeetAndTryTheirWaysBeforeTheyStart) {
  Fixture f(TwoMachines());
  f.Join(0, "a", 1);
  EXPECT_TRUE(f.Told<Prepare>().empty());
  f.Join(7, "b", 1);
  EXPECT_EQ(f.Told<Prepare>().size(), 2u);
  f.From(7, Ready{.generation = 1, .ports = {"2"}});
  f.From(0, Ready{.generation = 1, .ports = {"1"}});
  ASSERT_EQ(f.Told<Probe>().size(), 2u);
  EXPECT_THAT(f.Told<Probe>()[0].second.addresses, ElementsAre("a:1", "b:2"));
  f.From(0, Probed{.generation = 1});
  f.From(7, Probed{.generation = 1});
  const auto started = f.Told<StartRanks>();
  ASSERT_EQ(started.size(), 2u);
  EXPECT_EQ(started[0].first, 0);
  EXPECT_EQ(started[1].second.first_rank, 1);
}

TEST(Job, AnUnreachablePairIsNamedAndEndsTheJob) {
  Fixture f(TwoMachines());
  f.Join(0, "a", 1);
  f.Join(7, "b", 1);
  f.From(0, Ready{.generation = 1, .ports = {"1"}});
  f.From(7, Ready{.generation = 1, .ports = {"2"}});
  f.From(7, Probed{.generation = 1, .unreachable = {"a:1: no answer"}});
  EXPECT_EQ(f.Code(), 1);
  EXPECT_THAT(f.Words(), HasSubstr("from b (b) nobody reaches a:1: no answer"));
  EXPECT_EQ(f.Told<Finish>().size(), 2u) << "the others end, too";
}

TEST(Job, DifferentVersionsEndTheJobBeforeItStarts) {
  Fixture f(TwoMachines());
  Joined a{.address = "a"}, b{.address = "b"};
  a.facts = {.host = "a", .tensorflow = "2.21.0"};
  b.facts = {.host = "b", .tensorflow = "2.20.0"};
  f.From(0, a);
  f.From(7, b);
  EXPECT_EQ(f.Code(), 1);
  EXPECT_THAT(f.Words(), HasSubstr("a has 2.21.0, b has 2.20.0"));
}

TEST(Job, MissingMachinesAreCountedWhenTheWaitIsOver) {
  Fixture f(TwoMachines());
  f.Join(0, "a", 1);
  f.Pass(absl::Minutes(10));
  EXPECT_EQ(f.Code(), 1);
  EXPECT_THAT(f.Words(), HasSubstr("1 of 2 machines did not come within 600 s; here: a"));
}

TEST(Job, ALostMachineMayComeBackAndTheJobGoesOn) {
  Fixture f(TwoMachines());
  f.Join(0, "a", 1);
  f.Join(7, "b", 1);
  StartBoth(&f);
  f.On(NodeLost{7, "it closed the connection"});
  EXPECT_EQ(f.Told<StopRanks>().size(), 1u);
  f.EndRank(0, {.signal = SIGKILL, .by_us = true});
  f.Gone(0);
  EXPECT_EQ(f.Code(), -1);
  f.Pass(absl::Seconds(1));
  EXPECT_TRUE(f.Told<Prepare>().empty()) << "it waits for the other machine";
  f.Join(8, "b", 1);
  EXPECT_EQ(f.Told<Prepare>().size(), 2u);
}

TEST(Job, WithFewerMachinesAllowedTheJobGoesOnWithoutTheLostOne) {
  Policy policy = TwoMachines();
  policy.nodes_min = 1;
  Fixture f(policy);
  f.Join(0, "a", 1);
  f.Join(7, "b", 1);
  StartBoth(&f);
  f.On(NodeLost{7, "it is silent"});
  f.EndRank(0, {.signal = SIGKILL, .by_us = true});
  f.Gone(0);
  f.Pass(absl::Seconds(1));
  f.Pass(absl::Seconds(30));
  EXPECT_EQ(f.Told<Prepare>().size(), 1u);
}

TEST(Job, RanksAreOrderedByWishThenByNameAndTheLeaderStaysFirst) {
  Policy policy = TwoMachines();
  policy.nodes_min = policy.nodes_max = 3;
  Fixture f(policy);
  f.Join(5, "b", 1);
  f.Join(4, "c", 1);
  f.Join(0, "z", 1);
  ASSERT_EQ(f.Told<Prepare>().size(), 3u);
  EXPECT_EQ(f.Told<Prepare>()[0].first, 0);
  EXPECT_EQ(f.Told<Prepare>()[1].first, 5);
  EXPECT_EQ(f.Told<Prepare>()[2].first, 4);
}

TEST(Job, AMachineTooManyIsASpareThatTakesALostOnesPlace) {
  Policy policy = TwoMachines();
  policy.restarts_max = 1;
  Fixture f(policy);
  f.Join(0, "a", 1);
  f.Join(7, "b", 1);
  StartBoth(&f);
  // Such as the lost one itself, back before its silence was noticed.
  f.Join(9, "b", 1);
  EXPECT_EQ(f.Told<Prepare>().size() + f.Told<Finish>().size(), 0u);
  f.On(NodeLost{7, "it is silent"});
  f.EndRank(0, {.signal = SIGKILL, .by_us = true});
  f.Gone(0);
  f.Pass(absl::Seconds(1));
  ASSERT_EQ(f.Told<Prepare>().size(), 2u);
  EXPECT_EQ(f.Told<Prepare>()[1].first, 9);
}

}  // namespace
}  // namespace tensord::train
