// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/limits.h"
#include "base/text.h"
#include "models/ledger.h"
#include "models/observe.h"

namespace tensord::models {
namespace {

constexpr uint64_t kFileBytes = 100 << 20;

// A story in words: each step is what happens and what Decide then asks for.
//   config m [latest N | all | specific N...] [replicas N] [path P] [executors N]   a model's
//   config remove m         disk m 3 2! 1* 4~   (! incomplete, * other files than before, ~ a
//   model.tflite) loaded m/2#0 stateful m/2#0   failed m/2#0 CODE    died m/2#0    stopped m/2#0
//   wait SECONDS     memory WORKERS   (what the server may hold)
class Story {
 public:
  std::string Tell(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "config") Config(&words);
    if (what == "remove") Remove(&words);
    if (what == "disk") Disk(&words);
    if (what == "wait") Wait(&words);
    if (what == "memory") Memory(&words);
    if (what == "unload_missing") desired_.options.unload_missing = true;
    Worker(what, &words);
    return Settle();
  }

  std::string States(const std::string& model) const {
    std::string text;
    for (const VersionRecord& record : observed_.models.at(model).versions) {
      text += base::Cat(text.empty() ? "" : ", ", record.number, " ", StateName(record.state));
    }
    return text;
  }

 private:
  void Config(std::istringstream* words) {
    std::string name;
    *words >> name;
    ModelConfig config;
    config.name = name;
    config.base_path = "/models/" + name;
    for (std::string word; *words >> word;) {
      if (word == "latest") *words >> config.policy.latest;
      if (word == "all") config.policy.kind = VersionPolicy::Kind::kAll;
      if (word == "replicas") *words >> config.replicas;
      if (word == "path") *words >> config.base_path;
      if (word == "executors") *words >> config.worker.executors;
      if (word == "specific") {
        config.policy.kind = VersionPolicy::Kind::kSpecific;
        for (int64_t number = 0; *words >> number;) config.policy.specific.push_back(number);
      }
    }
    DesiredModel& model = desired_.models[name];
    if (model.config.base_path != config.base_path) {
      model.found.clear();
      model.listed = false;
    }
    model.config = config;
    for (VersionRecord& record : observed_.models[name].versions) {
      if (SameSpec(record.config, config)) record.config = config;
    }
  }

  void Remove(std::istringstream* words) {
    std::string name;
    *words >> name;
    desired_.models.erase(name);
  }

  void Disk(std::istringstream* words) {
    std::string name;
    *words >> name;
    Listing listing;
    for (std::string word; *words >> word;) {
      FoundVersion found{.number = std::stoll(word), .complete = true, .bytes = kFileBytes};
      found.directory = base::Cat("/models/", name, "/", found.number);
      found.complete = word.back() != '!';
      found.tflite = word.back() == '~';
      if (word.back() == '*') ++contents_[base::Cat(name, found.number)];
      found.fingerprint = 1 + contents_[base::Cat(name, found.number)];
      listing.versions.push_back(found);
    }
    Listed(name, listing, false, &desired_, &observed_);
  }

  void Wait(std::istringstream* words) {
    double seconds = 0;
    *words >> seconds;
    now_ += absl::Seconds(seconds);
  }

  void Memory(std::istringstream* words) {
    uint64_t workers = 0;
    *words >> workers;
    desired_.options.memory_bytes_max = workers * Ledger::Estimate(kFileBytes);
  }

  void Worker(const std::string& what, std::istringstream* words) {
    std::string name;
    *words >> name;
    const auto slash = name.find('/');
    const auto hash = name.find('#');
    if (slash == std::string::npos || hash == std::string::npos) return;
    const fleet::WorkerKey key{.model = name.substr(0, slash),
                               .version = std::stoll(name.substr(slash + 1)),
                               .replica = std::stoi(name.substr(hash + 1))};
    engine::ModelInfo info;
    if (what == "stateful") info.stateful_reason = "a counter";
    if (what == "loaded" || what == "stateful") {
      info.private_bytes = Ledger::Estimate(kFileBytes);
      Loaded(key, info, nullptr, now_, &observed_);
    }
    std::string code;
    *words >> code;
    if (what == "failed" && code == "DATA_LOSS") {
      LoadFailed(key, absl::DataLossError("bad"), desired_.options, now_, &observed_);
    } else if (what == "failed") {
      LoadFailed(key, absl::InternalError("odd"), desired_.options, now_, &observed_);
    }
    if (what == "died") Died(key, "SIGSEGV", desired_.options, now_, &observed_);
    if (what == "stopped") Stopped(key, desired_.options, now_, &observed_);
  }

  std::string Settle() {
    std::string text;
    for (int round = 0; round < 20; ++round) {
      const Decision decision = Decide(desired_, observed_, now_);
      if (decision.actions.empty()) return text;
      Orders orders;
      for (const Action& action : decision.actions) {
        text += base::Cat(text.empty() ? "" : ", ", ToString(action));
        Apply(action, desired_, now_, &observed_, &orders);
      }
    }
    return "no end: " + text;
  }

  Desired desired_;
  Observed observed_;
  absl::Time now_ = absl::UnixEpoch();
  std::map<std::string, uint64_t> contents_;
};

struct Step {
  std::string happens;
  std::string asks;
};
struct Row {
  std::string name;
  std::vector<Step> steps;
  std::string states = "";  // Of model m, at the end.
};

class DecideTest : public testing::TestWithParam<Row> {};

TEST_P(DecideTest, AsksForTheRightThings) {
  Story story;
  for (const Step& step : GetParam().steps) {
    ASSERT_EQ(story.Tell(step.happens), step.asks) << "after: " << step.happens;
  }
  if (!GetParam().states.empty()) {
    EXPECT_EQ(story.States("m"), GetParam().states);
  }
}

const std::vector<Row> kSwitching = {
    {"LoadsTheLatest",
     {{"config m", ""}, {"disk m 2 1", "begin m/2, start m/2#0"}, {"loaded m/2#0", ""}},
     "2 AVAILABLE"},
    {"SkipsWhatIsNotComplete",
     {{"config m", ""},
      {"disk m 2! 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"loaded m/2#0", "retire m/1"}}},
    {"TheOldOneGoesOnlyWhenTheNewOneServes",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"wait 1000", ""},
      {"loaded m/2#0", "retire m/1"},
      {"stopped m/1#0", ""}},
     "1 END, 2 AVAILABLE"},
    {"AFailingNewVersionLeavesTheOldOne",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"failed m/2#0 DATA_LOSS", ""},
      {"wait 1000", ""},
      {"disk m 2* 1", "begin m/2, start m/2#0"},
      {"loaded m/2#0", "retire m/1"}}},
    {"AFailedVersionIsNotTriedAgainUnchanged",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"failed m/1#0 DATA_LOSS", ""},
      {"disk m 1", ""},
      {"wait 10000", ""}},
     "1 END"},
    {"AtTheStartABadLatestGivesWayToTheNext",
     {{"config m", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"failed m/2#0 DATA_LOSS", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""}},
     "2 END, 1 AVAILABLE"},
    {"AVersionThatIsTensorFlowLiteGetsAWorkerOfThatKind",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m 2~ 1", "begin m/2, start m/2#0@litert"}}},
    {"AStormOfVersionsIsCoalesced",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"disk m 3 2 1", "begin m/3, start m/3#0"},
      {"disk m 4 3 2 1", "begin m/4"},
      {"disk m 5 4 3 2 1", "begin m/5, retire m/4"},
      {"loaded m/2#0", "retire m/1, start m/5#0"},
      {"loaded m/3#0", "retire m/2"},
      {"loaded m/5#0", "retire m/3"}}},
    {"AVersionThatUnloadsAndIsWantedAgainWaits",
     {{"config m specific 1", ""},
      {"disk m 2 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"config m specific 2", "begin m/2, start m/2#0"},
      {"loaded m/2#0", "retire m/1"},
      {"config m specific 1", ""},
      {"stopped m/1#0", "begin m/1, start m/1#0"},
      {"loaded m/1#0", "retire m/2"}}},
    {"AnEmptySpecificListUnloadsAll",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"config m specific", "retire m/1"},
      {"stopped m/1#0", ""}},
     "1 END"},
    {"ARemovedModelUnloadsEvenWhatLoads",
     {{"config m all", ""},
      {"disk m 2 1", "begin m/2, begin m/1, start m/2#0, start m/1#0"},
      {"loaded m/1#0", ""},
      {"remove m", "retire m/2, retire m/1"}},
     "2 UNLOADING, 1 UNLOADING"},
    {"AllVersionsHighestFirst",
     {{"config m all", ""},
      {"disk m 3 2 1", "begin m/3, begin m/2, begin m/1, start m/3#0, start m/2#0"},
      {"loaded m/3#0", "start m/1#0"}}},
};
const std::vector<Row> kVanishing = {
    {"AnEmptyListingUnloadsNothing",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m", ""}},
     "1 AVAILABLE"},
    {"ADeletedVersionServesOnBesideOlderOnes",
     {{"config m", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"loaded m/2#0", ""},
      {"disk m 1", ""}},
     "2 AVAILABLE"},
    {"ADeletedVersionGoesWhenANewerOneServes",
     {{"config m", ""},
      {"disk m 2", "begin m/2, start m/2#0"},
      {"loaded m/2#0", ""},
      {"disk m 3", "begin m/3, start m/3#0"},
      {"loaded m/3#0", "retire m/2"}}},
    {"ADeletedVersionThatDiesGivesWayToWhatIsThere",
     {{"config m", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"loaded m/2#0", ""},
      {"disk m 1", ""},
      {"died m/2#0", "begin m/1, retire m/2, start m/1#0"}}},
    {"ADeletedVersionThatNeverStartedEnds",
     {{"config a all", ""},
      {"disk a 2 1", "begin a/2, begin a/1, start a/2#0, start a/1#0"},
      {"config m", ""},
      {"disk m 1", "begin m/1"},
      {"disk m", "retire m/1"}},
     "1 END"},
    {"WithUnloadMissingADeletedVersionGivesWayToWhatIsThere",
     {{"config m", ""},
      {"unload_missing", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"loaded m/2#0", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", "retire m/2"}}},
    {"WithUnloadMissingAnEmptyListingUnloadsAll",
     {{"config m", ""},
      {"unload_missing", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m", "retire m/1"},
      {"stopped m/1#0", ""}},
     "1 END"},
    {"WithUnloadMissingFilesThatAreIncompleteUnloadNothing",
     {{"config m", ""},
      {"unload_missing", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m 1!", ""}},
     "1 AVAILABLE"},
    {"WithUnloadMissingAPathThatWasNotLookedAtUnloadsNothing",
     {{"config m", ""},
      {"unload_missing", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"config m path /else", ""}},
     "1 AVAILABLE"},
    {"AChangedBasePathSwitchesToTheSameNumberThere",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"config m path /else", ""},
      {"disk m 1", "begin m/1, start m/1#1"},
      {"loaded m/1#1", "retire m/1"},
      {"stopped m/1#0", ""}},
     "1 END, 1 AVAILABLE"},
    {"ChangedSettingsReplaceTheWorkers",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"config m executors 2", "begin m/1, start m/1#1"},
      {"loaded m/1#1", "retire m/1"}}},
    {"FilesReplacedInPlaceLeaveWhatServes",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m 1*", ""},
      {"died m/1#0", "renew m/1, start m/1#0"}}},
};
const std::vector<Row> kFailing = {
    {"RetriesSoonThenLater",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"failed m/1#0 INTERNAL", ""},
      {"wait 0.9", ""},
      {"wait 0.1", "start m/1#0"},
      {"failed m/1#0 INTERNAL", ""},
      {"wait 1.9", ""},
      {"wait 0.1", "start m/1#0"}},
     "1 LOADING"},
    {"GivesUpAfterAllRetriesAndTriesAgainMuchLater",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"failed m/1#0 INTERNAL", ""},
      {"wait 60", "start m/1#0"},
      {"failed m/1#0 INTERNAL", ""},
      {"wait 60", "start m/1#0"},
      {"failed m/1#0 INTERNAL", ""},
      {"wait 60", "start m/1#0"},
      {"failed m/1#0 INTERNAL", ""},
      {"wait 60", "start m/1#0"},
      {"failed m/1#0 INTERNAL", ""},
      {"wait 60", "start m/1#0"},
      {"failed m/1#0 INTERNAL", ""},
      {"wait 59", ""},
      {"wait 1", "begin m/1, start m/1#0"},
      {"failed m/1#0 INTERNAL", ""}},
     "1 END"},
    {"ADeathIsFollowedByARestart",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"died m/1#0", ""},
      {"wait 0.09", ""},
      {"wait 0.01", "start m/1#0"}},
     "1 LOADING"},
    {"ACrashLoopFallsBackToTheLastGoodVersion",
     {{"config m", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"loaded m/2#0", ""},
      {"died m/2#0", ""},
      {"wait 1", "start m/2#0"},
      {"loaded m/2#0", ""},
      {"died m/2#0", ""},
      {"wait 1", "start m/2#0"},
      {"loaded m/2#0", ""},
      {"died m/2#0", ""},
      {"wait 1", "start m/2#0"},
      {"loaded m/2#0", ""},
      {"died m/2#0", ""},
      {"wait 1", "start m/2#0"},
      {"loaded m/2#0", ""},
      {"died m/2#0", ""},
      {"wait 2", "start m/2#0"},
      {"loaded m/2#0", ""},
      {"died m/2#0", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"wait 1000", ""},
      {"disk m 2* 1", "begin m/2, start m/2#0"},
      {"loaded m/2#0", "retire m/1"}}},
    {"ACrashLoopWithNothingElseTriesOn",
     {{"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"died m/1#0", ""},
      {"wait 2", "start m/1#0"},
      {"loaded m/1#0", ""},
      {"died m/1#0", ""},
      {"wait 2", "start m/1#0"},
      {"loaded m/1#0", ""},
      {"died m/1#0", ""},
      {"wait 2", "start m/1#0"},
      {"loaded m/1#0", ""},
      {"died m/1#0", ""},
      {"wait 2", "start m/1#0"},
      {"loaded m/1#0", ""},
      {"died m/1#0", ""},
      {"wait 2", "start m/1#0"},
      {"loaded m/1#0", ""},
      {"died m/1#0", ""},
      {"wait 29", ""},
      {"wait 1", "begin m/1, start m/1#0"}}},
};
const std::vector<Row> kMany = {
    {"TwoFirstLoadsAtATimeOneAModelFirst",
     {{"config a all", ""},
      {"disk a 2 1", "begin a/2, begin a/1, start a/2#0, start a/1#0"},
      {"config b", ""},
      {"disk b 1", "begin b/1"},
      {"config c", ""},
      {"disk c 1", "begin c/1"},
      {"loaded a/2#0", "start b/1#0"},
      {"loaded a/1#0", "start c/1#0"}}},
    {"AHangingLoadStandsAside",
     {{"config a all", ""},
      {"disk a 2 1", "begin a/2, begin a/1, start a/2#0, start a/1#0"},
      {"config b", ""},
      {"disk b 1", "begin b/1"},
      {"wait 29", ""},
      {"wait 1", "start b/1#0"}}},
    {"ARestartNeedsNoTurn",
     {{"config a", ""},
      {"disk a 1", "begin a/1, start a/1#0"},
      {"loaded a/1#0", ""},
      {"config b all", ""},
      {"disk b 2 1", "begin b/2, begin b/1, start b/2#0, start b/1#0"},
      {"died a/1#0", ""},
      {"wait 0.1", "start a/1#0"}}},
    {"ReplicasFollowTheFirst",
     {{"config m replicas 3", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", "start m/1#1, start m/1#2"},
      {"loaded m/1#1", ""},
      {"config m replicas 2", "stop m/1#2"}}},
    {"TheOldVersionStaysUntilAllReplicasOfTheNewServe",
     {{"config m replicas 2", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", "start m/1#1"},
      {"loaded m/1#1", ""},
      {"disk m 2 1", "begin m/2, start m/2#0"},
      {"loaded m/2#0", "start m/2#1"},
      {"loaded m/2#1", "retire m/1"}}},
    {"AStatefulModelHasOneReplica",
     {{"config m replicas 3", ""}, {"disk m 1", "begin m/1, start m/1#0"}, {"stateful m/1#0", ""}}},
    {"ADeadReplicaIsReplacedWhileTheOtherServes",
     {{"config m replicas 2", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", "start m/1#1"},
      {"loaded m/1#1", ""},
      {"died m/1#0", ""},
      {"wait 0.1", "start m/1#0"}},
     "1 AVAILABLE"},
    {"WhatDoesNotFitIsRefused",
     {{"memory 1", ""},
      {"config a", ""},
      {"disk a 1", "begin a/1, start a/1#0"},
      {"loaded a/1#0", ""},
      {"config m", ""},
      {"disk m 1", "begin m/1, refuse m/1"},
      {"remove a", "retire a/1"},
      {"stopped a/1#0", "begin m/1, start m/1#0"}}},
    {"ANewVersionThatDoesNotFitLeavesTheOldOne",
     {{"memory 1", ""},
      {"config m", ""},
      {"disk m 1", "begin m/1, start m/1#0"},
      {"loaded m/1#0", ""},
      {"disk m 2 1", "begin m/2, refuse m/2"},
      {"wait 1000", ""}},
     "1 AVAILABLE, 2 END"},
    {"MemoryThatIsOnItsWayBackIsWaitedFor",
     {{"memory 1", ""},
      {"config a", ""},
      {"disk a 1", "begin a/1, start a/1#0"},
      {"loaded a/1#0", ""},
      {"remove a", "retire a/1"},
      {"config m", ""},
      {"disk m 1", "begin m/1"},
      {"stopped a/1#0", "start m/1#0"}}},
};

std::string RowName(const testing::TestParamInfo<Row>& row) { return row.param.name; }
INSTANTIATE_TEST_SUITE_P(Switching, DecideTest, testing::ValuesIn(kSwitching), RowName);
INSTANTIATE_TEST_SUITE_P(Vanishing, DecideTest, testing::ValuesIn(kVanishing), RowName);
INSTANTIATE_TEST_SUITE_P(Failing, DecideTest, testing::ValuesIn(kFailing), RowName);
INSTANTIATE_TEST_SUITE_P(Many, DecideTest, testing::ValuesIn(kMany), RowName);

TEST(Decide, WakesForTheNextRetry) {
  Desired desired;
  Observed observed;
  const absl::Time now = absl::UnixEpoch();
  desired.models["m"].config.name = "m";
  desired.models["m"].found = {{.number = 1, .complete = true, .fingerprint = 1}};
  Orders orders;
  for (int round = 0; round < 2; ++round) {
    for (const Action& action : Decide(desired, observed, now).actions) {
      Apply(action, desired, now, &observed, &orders);
    }
  }
  ASSERT_EQ(orders.size(), 1);
  LoadFailed(orders[0].key, absl::InternalError("x"), desired.options, now, &observed);
  EXPECT_EQ(Decide(desired, observed, now).wake, now + limits::kLoadRetryFirst);
}

TEST(Pauses, DoubleUpToTheirLimits) {
  Options options;
  options.load_retry_interval = absl::Seconds(5);
  EXPECT_EQ(LoadRetryPause(1, options), absl::Seconds(1));
  EXPECT_EQ(LoadRetryPause(3, options), absl::Seconds(4));
  EXPECT_EQ(LoadRetryPause(4, options), absl::Seconds(5));
  options.load_retry_interval = absl::Seconds(-1);
  EXPECT_EQ(LoadRetryPause(4, options), absl::ZeroDuration());
  EXPECT_EQ(RestartPause(1), absl::Milliseconds(100));
  EXPECT_EQ(RestartPause(4), absl::Milliseconds(800));
  EXPECT_EQ(RestartPause(1000), absl::Seconds(30));
}

TEST(Observe, KeepsTheLastEndedVersions) {
  Desired desired;
  Observed observed;
  absl::Time now = absl::UnixEpoch();
  desired.models["m"].config.name = "m";
  for (int64_t number = 1; number <= 40; ++number) {
    now += absl::Seconds(1);
    desired.models["m"].found = {{.number = number, .complete = true, .fingerprint = 1}};
    for (int round = 0; round < 5; ++round) {
      Orders orders;
      for (const Action& action : Decide(desired, observed, now).actions) {
        Apply(action, desired, now, &observed, &orders);
      }
      for (const Order& order : orders) {
        if (order.start.has_value()) {
          Loaded(order.key, {}, nullptr, now, &observed);
        } else {
          Stopped(order.key, desired.options, now, &observed);
        }
      }
    }
  }
  const auto& versions = observed.models["m"].versions;
  EXPECT_EQ(versions.size(), limits::kEndedVersionsMax + 1);
  EXPECT_EQ(std::ranges::min(versions, {}, &VersionRecord::number).number, 24);
}

}  // namespace
}  // namespace tensord::models
