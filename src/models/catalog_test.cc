// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/text.h"
#include "loop/testing/fake_timers.h"
#include "models/testing/fake_host.h"

namespace tensord::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

ModelConfig Model(const std::string& name) {
  ModelConfig model;
  model.name = name;
  model.base_path = "/models/" + name;
  return model;
}

WorkerKey Key(const std::string& model, int64_t version, int replica = 0) {
  return {.model = model, .version = version, .replica = replica};
}

class CatalogTest : public testing::Test {
 protected:
  // The answer, once there is one.
  std::shared_ptr<std::optional<absl::Status>> Set(std::vector<ModelConfig> models) {
    auto answer = std::make_shared<std::optional<absl::Status>>();
    catalog_->SetModels(std::move(models), [answer](const absl::Status& status) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = status;
    });
    EXPECT_FALSE(answer->has_value()) << "answered inside the call";
    Turn();
    return answer;
  }

  void Disk(const std::string& model, const std::vector<int64_t>& versions,
            const std::string& incomplete_reason = "") {
    Listing listing;
    for (const int64_t number : versions) {
      listing.versions.push_back({.number = number,
                                  .directory = base::Cat("/models/", model, "/", number),
                                  .complete = incomplete_reason.empty(),
                                  .reason = incomplete_reason,
                                  .fingerprint = contents_});
    }
    catalog_->OnSourceUpdate(model, "/models/" + model, listing);
    Turn();
  }
  void NoDisk(const std::string& model) {
    catalog_->OnSourceUpdate(
        model, "/models/" + model,
        absl::NotFoundError(base::Cat("base path /models/", model, " does not exist")));
    Turn();
  }
  void Load(const WorkerKey& key, const std::string& stateful = "") {
    engine::ModelInfo info;
    info.stateful_reason = stateful;
    catalog_->OnLoaded(key, info, std::make_shared<int>(1));
    Turn();
  }
  void Fail(const WorkerKey& key) {
    catalog_->OnLoadFailed(key, absl::DataLossError("bad file"));
    Turn();
  }
  void Serve(const std::string& model, int64_t version) {
    Disk(model, {version});
    Load(Key(model, version));
  }
  void Turn() { timers_.AdvanceTo(timers_.Now()); }

  State StateOf(const std::string& model, int64_t version) {
    const VersionEntry* entry = host_.snapshot->models.at(model)->Version(version);
    return entry == nullptr ? State::kEnd : entry->state;
  }
  std::string TextOf(const std::string& model, int64_t version) {
    return std::string(base::Message(host_.snapshot->models.at(model)->Version(version)->status));
  }

  loop::FakeTimers timers_;
  FakeHost host_;
  Options options_;
  std::unique_ptr<Catalog> catalog_ = std::make_unique<Catalog>(timers_, options_, host_);
  uint64_t contents_ = 1;
};

TEST_F(CatalogTest, LoadsPublishesAndThenAnswers) {
  const auto answer = Set({Model("m")});
  ASSERT_EQ(host_.watched.size(), 1);
  EXPECT_EQ(host_.watched[0].query.base_path, "/models/m");
  EXPECT_FALSE(host_.snapshot->ready);
  Disk("m", {2, 1});
  EXPECT_THAT(host_.Asked(), ElementsAre("start m/2#0"));
  EXPECT_EQ(host_.started.at(Key("m", 2)).directory, "/models/m/2");
  EXPECT_EQ(StateOf("m", 2), State::kLoading);
  EXPECT_FALSE(answer->has_value());
  Load(Key("m", 2));
  EXPECT_EQ(StateOf("m", 2), State::kAvailable);
  EXPECT_TRUE(host_.snapshot->ready);
  EXPECT_TRUE(answer->value().ok());
  EXPECT_TRUE(catalog_->StartFinished()->ok());
}

TEST_F(CatalogTest, TheOldVersionIsStoppedAfterTheNewOneIsPublished) {
  Set({Model("m")});
  Serve("m", 1);
  host_.Asked();
  Disk("m", {2, 1});
  EXPECT_EQ(StateOf("m", 1), State::kAvailable);
  Load(Key("m", 2));
  EXPECT_THAT(host_.Asked(), ElementsAre("start m/2#0", "stop m/1#0"));
  EXPECT_EQ(StateOf("m", 1), State::kUnloading);
  catalog_->OnStopped(Key("m", 1));
  Turn();
  EXPECT_EQ(StateOf("m", 1), State::kEnd);
  EXPECT_TRUE(host_.snapshot->models.at("m")->Version(1)->status.ok());
}

TEST_F(CatalogTest, AVanishedPathUnloadsNothing) {
  Set({Model("m")});
  Serve("m", 1);
  host_.Asked();
  NoDisk("m");
  EXPECT_EQ(StateOf("m", 1), State::kAvailable);
  EXPECT_FALSE(host_.snapshot->models.at("m")->source.ok());
  Disk("m", {});
  EXPECT_EQ(StateOf("m", 1), State::kAvailable);
  EXPECT_THAT(host_.snapshot->models.at("m")->Version(1)->warnings,
              IsEmpty());  // An empty listing is as good as none.
  Disk("m", {1});
  EXPECT_TRUE(host_.snapshot->models.at("m")->source.ok());
  EXPECT_THAT(host_.Asked(), IsEmpty());
}

TEST_F(CatalogTest, AMissingPathIsNamedAtOnceAndTheRestServes) {
  Set({Model("old")});
  Serve("old", 1);
  const auto answer = Set({Model("old"), Model("good"), Model("lost")});
  Serve("good", 1);
  EXPECT_FALSE(answer->has_value());
  NoDisk("lost");
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ(answer->value().code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(std::string(base::Message(answer->value())),
              testing::AllOf(StartsWith("1 model(s) did not become available: {{{name: lost}"),
                             HasSubstr("base path /models/lost does not exist")));
  EXPECT_EQ(StateOf("old", 1), State::kAvailable);
  EXPECT_EQ(StateOf("good", 1), State::kAvailable);
  // A correct list is answered at once, and what was lost comes up when it appears.
  const auto next = Set({Model("old"), Model("good")});
  EXPECT_TRUE(next->value().ok());
}

TEST_F(CatalogTest, AFailedModelIsNamedWithVersionAndError) {
  const auto answer = Set({Model("m")});
  Disk("m", {3});
  Fail(Key("m", 3));
  EXPECT_EQ(std::string(base::Message(answer->value())),
            "1 model(s) did not become available: {{{name: m version: 3} due to error: DATA_LOSS: "
            "bad file}, }");
  EXPECT_EQ(std::string(base::Message(*catalog_->StartFinished())),
            "1 servable(s) did not become available: {{{name: m version: 3} due to error: "
            "DATA_LOSS: bad file}, }");
  EXPECT_EQ(StateOf("m", 3), State::kEnd);
  EXPECT_EQ(TextOf("m", 3), "bad file");
  EXPECT_TRUE(host_.watched[0].query.closely);
  contents_ = 2;
  Disk("m", {3});
  Load(Key("m", 3));
  EXPECT_EQ(StateOf("m", 3), State::kAvailable);
}

TEST_F(CatalogTest, TheStartOfTheOriginalWaitsForAMissingPath) {
  Set({Model("m")});
  NoDisk("m");
  EXPECT_FALSE(catalog_->StartFinished().has_value());
  timers_.Advance(absl::Hours(1));
  EXPECT_FALSE(catalog_->StartFinished().has_value());
  Serve("m", 1);
  EXPECT_TRUE(catalog_->StartFinished()->ok());
}

TEST_F(CatalogTest, AReloadThatTakesTooLongIsAnsweredAndGoesOn) {
  const auto answer = Set({Model("m")});
  Disk("m", {1});
  timers_.Advance(limits::kReloadWaitMax);
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ(answer->value().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(base::Message(answer->value())), HasSubstr("go on loading: m"));
  Load(Key("m", 1));
  EXPECT_EQ(StateOf("m", 1), State::kAvailable);
}

TEST_F(CatalogTest, AReloadIsAnsweredAtItsDeadlineWithWhatStillLoads) {
  const auto answer = std::make_shared<std::optional<absl::Status>>();
  catalog_->SetModels(
      {Model("a"), Model("b")}, [answer](const absl::Status& status) { *answer = status; },
      timers_.Now() + absl::Seconds(5));
  Turn();
  Serve("a", 1);
  Disk("b", {1});
  timers_.Advance(absl::Seconds(4));
  EXPECT_FALSE(answer->has_value());
  timers_.Advance(absl::Seconds(1));
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(base::Message(**answer)),
              testing::AllOf(HasSubstr("after 5s"), HasSubstr("go on loading: b")));
  Load(Key("b", 1));
  EXPECT_TRUE(*host_.snapshot->ModelReady("b"));
}

TEST_F(CatalogTest, ReloadsDoNotWaitForEachOther) {
  const auto first = Set({Model("slow")});
  Disk("slow", {1});
  const auto second = Set({Model("slow"), Model("quick")});
  Serve("quick", 1);
  EXPECT_TRUE(second->value().ok());
  EXPECT_FALSE(first->has_value());
  const auto third = Set({Model("quick")});
  EXPECT_TRUE(third->value().ok());
  EXPECT_EQ(first->value().code(), absl::StatusCode::kAborted);
}

TEST_F(CatalogTest, WaitingReloadsAreLimited) {
  std::vector<ModelConfig> models;
  std::vector<std::shared_ptr<std::optional<absl::Status>>> answers;
  for (size_t i = 0; i < limits::kReloadsWaitingMax; ++i) {
    models.push_back(Model(base::Cat("m", i)));
    answers.push_back(Set(models));
    EXPECT_FALSE(answers.back()->has_value());
  }
  const size_t before = catalog_->models().size();
  models.push_back(Model("one too many"));
  EXPECT_EQ(Set(models)->value().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(catalog_->models().size(), before);
  catalog_.reset();
  for (const auto& answer : answers) {
    EXPECT_EQ(answer->value().code(), absl::StatusCode::kUnavailable);
  }
}

TEST_F(CatalogTest, ABadListChangesNothing) {
  Set({Model("m")});
  Serve("m", 1);
  const auto answer = Set({Model("x"), Model("x")});
  EXPECT_EQ(answer->value().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(catalog_->models().size(), 1);
  EXPECT_EQ(StateOf("m", 1), State::kAvailable);
}

TEST_F(CatalogTest, ARemovedModelUnloadsAndStaysInTheStatus) {
  Set({Model("m")});
  Serve("m", 1);
  host_.Asked();
  EXPECT_TRUE(Set({})->value().ok());
  EXPECT_THAT(host_.Asked(), ElementsAre("stop m/1#0"));
  EXPECT_EQ(host_.snapshot->Find({.model = "m", .version = {}, .label = {}}, timers_.Now())
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  catalog_->OnStopped(Key("m", 1));
  Turn();
  EXPECT_EQ(StateOf("m", 1), State::kEnd);
}

TEST_F(CatalogTest, LabelsAtTheStartWaitForTheirVersions) {
  ModelConfig model = Model("m");
  model.policy.kind = VersionPolicy::Kind::kAll;
  model.labels = {{"stable", 1}, {"canary", 2}};
  Set({model});
  Disk("m", {2, 1});
  const VersionSpec stable{.model = "m", .version = {}, .label = "stable"};
  EXPECT_EQ(host_.snapshot->Find(stable, timers_.Now()).status().code(),
            absl::StatusCode::kUnavailable);
  Load(Key("m", 1));
  EXPECT_EQ((*host_.snapshot->Find(stable, timers_.Now()))->number, 1);
}

TEST_F(CatalogTest, ALabelOnAnUnavailableVersionIsRefusedAtAReload) {
  Set({Model("m")});
  Serve("m", 1);
  ModelConfig model = Model("m");
  model.labels = {{"stable", 7}};
  const auto answer = Set({model});
  EXPECT_EQ(answer->value().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(base::Message(answer->value())),
              StartsWith("Request to assign label to version 7 of model m, which is not currently "
                         "available for inference"));
  EXPECT_THAT(catalog_->models()[0].labels, IsEmpty());
  model.labels = {{"stable", 1}};
  EXPECT_TRUE(Set({model})->value().ok());
  EXPECT_EQ(host_.snapshot->models.at("m")->labels.at("stable"), 1);
}

TEST_F(CatalogTest, AMovedLabelStaysUntilItsNewVersionServes) {
  options_.allow_labels_for_unavailable = true;
  catalog_ = std::make_unique<Catalog>(timers_, options_, host_);
  ModelConfig model = Model("m");
  model.labels = {{"stable", 1}};
  Set({model});
  Serve("m", 1);
  model.labels = {{"stable", 2}};
  EXPECT_TRUE(Set({model})->value().ok());
  Disk("m", {2, 1});
  EXPECT_EQ(host_.snapshot->models.at("m")->labels.at("stable"), 1);
  Load(Key("m", 2));
  EXPECT_EQ(host_.snapshot->models.at("m")->labels.at("stable"), 2);
  EXPECT_EQ(StateOf("m", 1), State::kUnloading);
}

TEST_F(CatalogTest, AModelThatLeavesAndComesBackWithinATurnIsLookedAtAgain) {
  Set({Model("a"), Model("m")});
  ASSERT_EQ(host_.watched.size(), 2);
  const uint64_t first_look = host_.watched[1].look;
  // All in one turn: its listing comes, one list drops it, the next has it again.
  Listing listing;
  listing.versions = {
      {.number = 1, .directory = "/models/m/1", .complete = true, .fingerprint = 1}};
  catalog_->OnSourceUpdate("m", "/models/m", listing);
  catalog_->SetModels({Model("a")}, [](const absl::Status&) {});
  catalog_->SetModels({Model("a"), Model("m")}, [](const absl::Status&) {});
  Turn();
  ASSERT_EQ(host_.watched.size(), 2);
  EXPECT_NE(host_.watched[1].look, first_look);
}

TEST_F(CatalogTest, AnIncompleteVersionIsShownWithItsReason) {
  Set({Model("m")});
  Serve("m", 1);
  Listing listing;
  listing.versions = {{.number = 2, .complete = false, .reason = "no shard", .fingerprint = 5},
                      {.number = 1, .complete = true, .fingerprint = 1}};
  catalog_->OnSourceUpdate("m", "/models/m", listing);
  Turn();
  EXPECT_EQ(StateOf("m", 2), State::kStart);
  EXPECT_THAT(TextOf("m", 2), HasSubstr("no shard"));
  EXPECT_EQ(StateOf("m", 1), State::kAvailable);
  timers_.Advance(limits::kIncompleteWaitMax);
  EXPECT_EQ(StateOf("m", 2), State::kEnd);
}

TEST_F(CatalogTest, ADeathIsShownAndRestarted) {
  Set({Model("m")});
  Serve("m", 1);
  host_.Asked();
  catalog_->OnDied(Key("m", 1), "SIGSEGV");
  Turn();
  const VersionEntry* entry = host_.snapshot->models.at("m")->Version(1);
  EXPECT_EQ(entry->state, State::kLoading);
  EXPECT_TRUE(entry->restarting);
  EXPECT_NE(entry->handle, nullptr);
  EXPECT_EQ(entry->restarts, 1);
  EXPECT_THAT(TextOf("m", 1), HasSubstr("SIGSEGV"));
  EXPECT_TRUE(host_.snapshot->ready) << "latched";
  timers_.Advance(limits::kRestartFirst);
  EXPECT_THAT(host_.Asked(), ElementsAre("start m/1#0"));
  Load(Key("m", 1));
  EXPECT_EQ(StateOf("m", 1), State::kAvailable);
  EXPECT_EQ(TextOf("m", 1), "");
}

TEST_F(CatalogTest, AStatefulModelSaysSoAndGetsOneReplica) {
  ModelConfig model = Model("m");
  model.replicas = 3;
  Set({model});
  Disk("m", {1});
  host_.Asked();
  Load(Key("m", 1), "AssignAddVariableOp");
  EXPECT_THAT(host_.Asked(), IsEmpty());
  const VersionEntry* entry = host_.snapshot->models.at("m")->Version(1);
  EXPECT_EQ(entry->stateful_reason, "AssignAddVariableOp");
  EXPECT_THAT(entry->warnings, ElementsAre(HasSubstr("one replica instead of 3")));
}

TEST_F(CatalogTest, WhatDoesNotFitIsRefusedWithTheNumbers) {
  options_.memory_bytes_max = limits::kWorkerBaseBytes;
  catalog_ = std::make_unique<Catalog>(timers_, options_, host_);
  Set({Model("a")});
  Serve("a", 1);
  const auto answer = Set({Model("a"), Model("b")});
  Disk("b", {1});
  EXPECT_THAT(std::string(base::Message(answer->value())),
              HasSubstr("RESOURCE_EXHAUSTED: Insufficient resources to load servable"));
  EXPECT_EQ(StateOf("b", 1), State::kEnd);
}

TEST_F(CatalogTest, NewSettingsKeepTheOldGenerationInSightWhileItUnloads) {
  Set({Model("m")});
  Serve("m", 1);
  const uint64_t old = host_.snapshot->models.at("m")->Version(1)->generation;
  ModelConfig model = Model("m");
  model.worker.executors = 4;
  Set({model});
  EXPECT_EQ(host_.snapshot->models.at("m")->Version(1)->generation, old);
  host_.Asked();
  Load(Key("m", 1, 1));
  EXPECT_THAT(host_.Asked(), ElementsAre("stop m/1#0"));
  const auto entry = host_.snapshot->models.at("m");
  EXPECT_NE(entry->Version(1)->generation, old);
  EXPECT_EQ(entry->Version(1)->state, State::kAvailable);
  EXPECT_THAT(entry->unloading, ElementsAre(std::pair(int64_t{1}, old)));
  catalog_->OnStopped(Key("m", 1, 0));
  Turn();
  EXPECT_THAT(host_.snapshot->models.at("m")->unloading, IsEmpty());
}

TEST_F(CatalogTest, AHostMayAnswerInsideTheCall) {
  host_.on_start = [this](const WorkerKey& key) {
    catalog_->OnLoadFailed(key, absl::DataLossError("at once"));
  };
  const auto answer = Set({Model("m")});
  Disk("m", {1});
  EXPECT_EQ(StateOf("m", 1), State::kEnd);
  EXPECT_TRUE(answer->has_value());
}

TEST_F(CatalogTest, ShutdownStopsAllAndTellsOnce) {
  Set({Model("a"), Model("b")});
  Serve("a", 1);
  Serve("b", 1);
  host_.Asked();
  int told = 0;
  catalog_->Shutdown([&] { ++told; });
  Turn();
  EXPECT_THAT(host_.Asked(), UnorderedElementsAre("stop a/1#0", "stop b/1#0"));
  EXPECT_EQ(told, 0);
  catalog_->OnStopped(Key("a", 1));
  catalog_->OnDied(Key("b", 1), "killed");
  Turn();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(Set({Model("c")})->value().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CatalogTest, MeasuredMemoryIsShown) {
  Set({Model("m")});
  Serve("m", 1);
  catalog_->OnMemory(Key("m", 1), 123456789);
  Turn();
  EXPECT_EQ(host_.snapshot->models.at("m")->Version(1)->memory_bytes, 123456789);
}

TEST_F(CatalogTest, AListWithoutModelsIsReady) {
  EXPECT_TRUE(Set({})->value().ok());
  EXPECT_TRUE(host_.snapshot->ready);
  EXPECT_TRUE(catalog_->StartFinished()->ok());
}

}  // namespace
}  // namespace tensord::models
