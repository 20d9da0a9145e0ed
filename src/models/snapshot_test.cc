// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace tensord::models {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Seconds(100);

VersionEntry Version(int64_t number, State state, absl::Status status = absl::OkStatus()) {
  VersionEntry entry;
  entry.number = number;
  entry.state = state;
  entry.status = std::move(status);
  entry.since = kNow - absl::Seconds(3);
  return entry;
}

// m: 4 loads, 3 serves, 2 failed, 1 is over; labels stable on 3, next on 4, old on 9.
// cold: 1 loads.  broken: 1 failed.  looping: 1 is in a crash loop.  restarting: 1's worker died.
// empty: no files.  gone: left the list, 1 unloads.
Snapshot World() {
  Snapshot world;
  auto add = [&](const std::string& name, std::vector<VersionEntry> versions) {
    auto entry = std::make_shared<ModelEntry>();
    entry->versions = std::move(versions);
    entry->looked_at = true;
    entry->base_path = "/" + name;
    world.models[name] = entry;
    return entry;
  };
  const auto m =
      add("m", {Version(4, State::kLoading), Version(3, State::kAvailable),
                Version(2, State::kEnd, absl::DataLossError("bad file")), Version(1, State::kEnd)});
  m->named = {4, 3, 8};
  m->labels = {{"next", 4}, {"old", 9}, {"stable", 3}};
  add("cold", {Version(1, State::kLoading, absl::InternalError("odd"))});
  add("broken", {Version(1, State::kEnd, absl::DataLossError("bad file"))});
  add("looping", {Version(1, State::kEnd, absl::UnavailableError("crash loop"))});
  const auto restarting = add("restarting", {Version(1, State::kLoading)});
  restarting->versions[0].restarting = true;
  add("empty", {})->source = absl::NotFoundError("base path /empty does not exist");
  add("gone", {Version(1, State::kUnloading)})->configured = false;
  const auto looping = std::make_shared<ModelEntry>(*world.models["looping"]);
  looping->versions[0].will_retry = true;
  world.models["looping"] = looping;
  return world;
}

struct Row {
  std::string name;
  VersionSpec spec;
  int64_t found = 0;  // 0: an error.
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string text = "";
};

class FindTest : public testing::TestWithParam<Row> {};

TEST_P(FindTest, AnswersAsTheContractSays) {
  const Row& row = GetParam();
  const Snapshot world = World();
  const auto found = world.Find(row.spec, kNow);
  if (row.found != 0) {
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ((*found)->number, row.found);
    return;
  }
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), row.code);
  EXPECT_THAT(std::string(base::Message(found.status())), testing::StartsWith(row.text));
  EXPECT_EQ(RetryAfter(found.status()).has_value(), row.code == absl::StatusCode::kUnavailable);
}

constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

VersionSpec Latest(std::string_view model) { return {.model = model, .version = {}, .label = {}}; }
VersionSpec Number(std::string_view model, int64_t version) {
  return {.model = model, .version = version, .label = {}};
}
VersionSpec Label(std::string_view model, std::string_view label) {
  return {.model = model, .version = {}, .label = label};
}
VersionSpec OrRestarting(VersionSpec spec) {
  spec.or_restarting = true;
  return spec;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, FindTest,
    testing::Values(
        Row{"LatestAvailable", Latest("m"), 3}, Row{"ByNumber", Number("m", 3), 3},
        Row{"ByLabel", Label("m", "stable"), 3},
        Row{"UnknownModel", Latest("x"), 0, kNotFound, "Servable not found for request: Latest(x)"},
        Row{"UnknownVersion", Number("m", 7), 0, kNotFound,
            "Servable not found for request: Specific(m, 7)"},
        Row{"UnknownVersionOfUnknownModel", Number("x", 7), 0, kNotFound,
            "Servable not found for request: Specific(x, 7)"},
        Row{"UnknownLabel", Label("m", "x"), 0, absl::StatusCode::kInvalidArgument,
            "Unrecognized servable version label: x"},
        Row{"LabelOfUnknownModel", Label("x", "stable"), 0, absl::StatusCode::kInvalidArgument,
            "Unrecognized servable version label: stable"},
        Row{"LabelOnWhatIsNotThere", Label("m", "old"), 0, kNotFound,
            "Servable not found for request: Specific(m, 9)"},
        Row{"LabelOnWhatLoads", Label("m", "next"), 0, kUnavailable,
            "Model m, version 4, is configured but not loaded yet (LOADING since 3 s): try again"},
        Row{"FailedVersion", Number("m", 2), 0, kNotFound,
            "Servable not found for request: Specific(m, 2): version 2 failed: bad file"},
        Row{"EndedVersion", Number("m", 1), 0, kNotFound,
            "Servable not found for request: Specific(m, 1)"},
        Row{"StillLoading", Latest("cold"), 0, kUnavailable,
            "Model cold, version 1, is configured but not loaded yet (LOADING since 3 s; odd): "
            "try again"},
        Row{"FailedModel", Latest("broken"), 0, kNotFound,
            "Servable not found for request: Latest(broken): version 1 failed: bad file"},
        Row{"CrashLoop", Latest("looping"), 0, kUnavailable,
            "Model looping, version 1 failed: crash loop; it is tried again"},
        Row{"Restarting", Latest("restarting"), 0, kUnavailable,
            "Model restarting, version 1, is configured but its worker is being restarted"},
        Row{"RestartingForThoseWhoWait", OrRestarting(Latest("restarting")), 1},
        Row{"RestartingByNumber", OrRestarting(Number("restarting", 1)), 1},
        Row{"LoadingIsNotRestarting", OrRestarting(Latest("cold")), 0, kUnavailable, "Model cold"},
        Row{"NoFiles", Latest("empty"), 0, kUnavailable,
            "Model empty is configured but has no version to serve: base path /empty does not"},
        Row{"VersionThatThePolicyNames", Number("m", 8), 0, kUnavailable,
            "Model m, version 8, is configured but not there yet: it is not in /m"},
        Row{"VersionWhereNothingCanBeFound", Number("empty", 1), 0, kUnavailable,
            "Model empty, version 1, may be there but cannot be found yet: base path /empty"},
        Row{"RemovedModel", Latest("gone"), 0, kNotFound,
            "Servable not found for request: Latest(gone)"},
        Row{"VersionOfRemovedModel", Number("gone", 1), 0, kNotFound,
            "Servable not found for request: Specific(gone, 1)"}),
    [](const auto& row) { return row.param.name; });

TEST(Status, ListsVersionsHighestFirst) {
  const Snapshot world = World();
  const auto all = world.Status("m", std::nullopt);
  ASSERT_TRUE(all.ok());
  std::vector<int64_t> numbers;
  for (const VersionEntry* version : *all) numbers.push_back(version->number);
  EXPECT_THAT(numbers, testing::ElementsAre(4, 3, 2, 1));
  const auto one = world.Status("m", 2);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->front()->state, State::kEnd);
}

TEST(Status, NamesWhatIsUnknown) {
  const Snapshot world = World();
  EXPECT_EQ(world.Status("x", std::nullopt).status(),
            absl::NotFoundError("Could not find any versions of model x"));
  EXPECT_EQ(world.Status("m", 7).status(),
            absl::NotFoundError("Could not find version 7 of model m"));
}

TEST(ModelReady, IsNotLatched) {
  const Snapshot world = World();
  EXPECT_TRUE(*world.ModelReady("m"));
  EXPECT_FALSE(*world.ModelReady("restarting"));
  EXPECT_EQ(world.ModelReady("x").status().code(), kNotFound);
}

TEST(State, NamesAreThoseOfTheOriginal) {
  EXPECT_EQ(StateName(State::kStart), "START");
  EXPECT_EQ(StateName(State::kAvailable), "AVAILABLE");
  EXPECT_EQ(static_cast<int>(State::kEnd), 50);
}

}  // namespace
}  // namespace tensord::models
