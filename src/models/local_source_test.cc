// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/local_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/text.h"
#include "models/testing/saved_model_files.h"

namespace tensord::models {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A directory of its own, gone at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = fs::temp_directory_path() / "tensord_models_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TempDir() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class TestClock final : public base::Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::UnixEpoch();
};

class LocalSourceTest : public testing::Test {
 protected:
  // Files' times are real; by default they are much older than "now".
  LocalSourceTest()
      : source_({.quiet = absl::Seconds(1), .clock = &clock_, .wall_time = [this] {
                   return base::WallTime() + age_;
                 }}) {
    query_.base_path = dir_.path();
  }

  Listing List() {
    const auto listing = source_.List(query_);
    EXPECT_TRUE(listing.ok()) << listing.status();
    return listing.ok() ? *listing : Listing();
  }
  // "2, 1 (there is no saved_model.pb)"
  std::string Text() {
    std::string text;
    for (const FoundVersion& found : List().versions) {
      text += base::Cat(text.empty() ? "" : ", ", found.number);
      if (!found.complete) text += base::Cat(" (", found.reason, ")");
    }
    return text;
  }

  TempDir dir_;
  TestClock clock_;
  absl::Duration age_ = absl::Hours(1);
  SourceQuery query_;
  LocalSource source_;
};

struct NameRow {
  std::string name;
  bool version;
  int64_t number = 0;
};

TEST(VersionNumber, IsDecimalDigitsUpToInt64) {
  const NameRow rows[] = {{"1", true, 1},
                          {"00000123", true, 123},
                          {"1712345678901", true, 1712345678901},
                          {"0", true, 0},
                          {"9223372036854775807", true, 9223372036854775807},
                          {"9223372036854775808", false},
                          {"-1", false},
                          {"+1", false},
                          {" 1", false},
                          {"1e3", false},
                          {"0x10", false},
                          {"2.denied", false},
                          {"tmp-3", false},
                          {"\xd9\xa1", false},  // An Arabic-Indic one.
                          {"..", false},
                          {"", false}};
  for (const NameRow& row : rows) {
    int64_t number = 0;
    EXPECT_EQ(VersionNumber(row.name, &number), row.version) << row.name;
    if (row.version) {
      EXPECT_EQ(number, row.number) << row.name;
    }
  }
}

TEST_F(LocalSourceTest, FindsWholeVersionsHighestFirst) {
  WriteVersion(dir_ / "2");
  WriteVersion(dir_ / "00010");
  WriteVersion(dir_ / "2.denied");
  const Listing listing = List();
  ASSERT_EQ(listing.versions.size(), 2);
  EXPECT_EQ(listing.versions[0].number, 10);
  EXPECT_EQ(listing.versions[0].directory, (dir_ / "00010").string());
  EXPECT_TRUE(listing.versions[0].complete);
  EXPECT_GT(listing.versions[0].bytes, 100);
  EXPECT_NE(listing.versions[0].fingerprint, 0);
  EXPECT_FALSE(listing.unsettled);
}

TEST_F(LocalSourceTest, OfTwoNamesForANumberTakesTheLastAndWarns) {
  WriteVersion(dir_ / "01");
  WriteVersion(dir_ / "1");
  const Listing listing = List();
  ASSERT_EQ(listing.versions.size(), 1);
  EXPECT_EQ(listing.versions[0].directory, (dir_ / "1").string());
  EXPECT_THAT(listing.warnings, ElementsAre(HasSubstr("01 and 1, which are version 1")));
}

TEST_F(LocalSourceTest, AFileIsNoVersion) {
  WriteFile(dir_ / "3", "x");
  const Listing listing = List();
  EXPECT_THAT(listing.versions, IsEmpty());
  EXPECT_THAT(listing.warnings, ElementsAre(HasSubstr("is not a directory")));
}

TEST_F(LocalSourceTest, LinksToDirectoriesAreVersions) {
  const TempDir elsewhere;
  WriteVersion(elsewhere / "export");
  fs::create_directory_symlink(elsewhere / "export", dir_ / "1");
  EXPECT_EQ(Text(), "1");
}

TEST_F(LocalSourceTest, SaysWhatIsMissing) {
  fs::create_directories(dir_ / "1");
  EXPECT_EQ(Text(), "1 (there is no saved_model.pb)");
  WriteFile(dir_ / "1/saved_model.pb", MakeGraph("VarHandleOp"));
  WriteFile(dir_ / "1/variables/variables.data-00000-of-00001.tempstate123", "x");
  EXPECT_EQ(Text(), "1 (there is no variables/variables.index)");
  const std::string index = MakeIndex(2, {{.name = "a", .shard = 0, .offset = 0, .size = 10},
                                          {.name = "b", .shard = 1, .offset = 0, .size = 20}});
  WriteFile(dir_ / "1/variables/variables.index", index.substr(0, index.size() / 2));
  EXPECT_THAT(Text(), HasSubstr("variables.index"));
  EXPECT_THAT(Text(), HasSubstr("no proper end yet"));
  WriteFile(dir_ / "1/variables/variables.index", index);
  EXPECT_EQ(Text(), "1 (there is no variables/variables.data-00000-of-00002)");
  WriteFile(dir_ / "1/variables/variables.data-00000-of-00002", std::string(10, 'x'));
  WriteFile(dir_ / "1/variables/variables.data-00001-of-00002", std::string(19, 'x'));
  EXPECT_EQ(Text(),
            "1 (variables/variables.data-00001-of-00002 has 19 of the 20 bytes that its index "
            "names)");
  EXPECT_TRUE(List().unsettled);
  WriteFile(dir_ / "1/variables/variables.data-00001-of-00002", std::string(20, 'x'));
  EXPECT_EQ(Text(), "1 (its files may still be coming)");
  clock_.now += absl::Seconds(1);
  EXPECT_EQ(Text(), "1");
}

TEST_F(LocalSourceTest, AModelTfliteIsNothingWhereItIsNotPreferred) {
  WriteFile(dir_ / "1/model.tflite", "....TFL3....");
  WriteVersion(dir_ / "2");
  WriteFile(dir_ / "2/model.tflite", "....TFL3....");
  EXPECT_EQ(Text(), "2, 1 (there is no saved_model.pb)");
  EXPECT_FALSE(List().versions[0].tflite);
}

TEST_F(LocalSourceTest, AModelTfliteIsAllThatAVersionNeedsWhereItIsPreferred) {
  query_.tflite = true;
  WriteFile(dir_ / "1/model.tflite", "....TFL3....");
  WriteVersion(dir_ / "2");
  WriteFile(dir_ / "2/model.tflite", "....TFL3....");
  WriteVersion(dir_ / "3");
  const auto lite = [this](size_t i) { return List().versions[i].tflite; };
  EXPECT_EQ(Text(), "3, 2, 1");
  EXPECT_FALSE(lite(0));
  EXPECT_TRUE(lite(1));
  EXPECT_TRUE(lite(2));
  fs::create_directories(dir_ / "4");
  ASSERT_EQ(mkfifo((dir_ / "4/model.tflite").c_str(), 0600), 0);
  EXPECT_THAT(Text(), HasSubstr("4 (model.tflite is not a regular file)"));
}

TEST_F(LocalSourceTest, APauseIsNotTheEnd) {
  age_ = absl::ZeroDuration();
  WriteFile(dir_ / "1/saved_model.pb", MakeGraph("a graph with a VarHandleOp"));
  for (int i = 0; i < 10; ++i) {
    clock_.now += absl::Seconds(1);
    ASSERT_THAT(Text(), HasSubstr("the graph has variables, but there is no variables/"));
  }
  WriteVersion(dir_ / "1");
  EXPECT_EQ(Text(), "1 (its files may still be coming)");
  clock_.now += absl::Seconds(1);
  EXPECT_EQ(Text(), "1");
}

TEST_F(LocalSourceTest, ADoubtIsGivenUpInTheEnd) {
  age_ = absl::ZeroDuration();
  const std::string graph = MakeGraph("a long graph without an end");
  WriteFile(dir_ / "1/saved_model.pb", graph.substr(0, graph.size() - 3));
  EXPECT_THAT(Text(), HasSubstr("saved_model.pb ends in the middle"));
  clock_.now += absl::Seconds(20);
  EXPECT_EQ(Text(), "1") << "the worker has the last word";
  EXPECT_THAT(source_.List(query_)->versions[0].doubt, HasSubstr("ends in the middle"));
}

TEST_F(LocalSourceTest, WhatIsFreshMustBeQuietAndWhatWasRenamedNeedNot) {
  age_ = absl::ZeroDuration();
  WriteVersion(dir_ / "1");
  EXPECT_EQ(Text(), "1 (its files may still be coming)");
  clock_.now += absl::Milliseconds(900);
  EXPECT_EQ(Text(), "1 (its files may still be coming)")
      << "looks in quick succession prove nothing";
  WriteVersion(dir_ / "2.tmp");
  fs::rename(dir_ / "2.tmp", dir_ / "2");
  query_.renamed = {"2"};
  EXPECT_EQ(Text(), "2, 1 (its files may still be coming)");
  query_.renamed.clear();
  clock_.now += absl::Milliseconds(100);
  EXPECT_EQ(Text(), "2, 1");
}

TEST_F(LocalSourceTest, ARenamedDirectoryIsCheckedAllTheSame) {
  age_ = absl::ZeroDuration();
  fs::create_directories(dir_ / "1");
  query_.renamed = {"1"};
  EXPECT_EQ(Text(), "1 (there is no saved_model.pb)");
}

TEST_F(LocalSourceTest, TakesOnlyRegularFiles) {
  WriteVersion(dir_ / "1");
  fs::remove(dir_ / "1/saved_model.pb");
  ASSERT_EQ(mkfifo((dir_ / "1/saved_model.pb").c_str(), 0600), 0);
  EXPECT_EQ(Text(), "1 (saved_model.pb is not a regular file)");
  WriteVersion(dir_ / "2");
  fs::remove(dir_ / "2/variables/variables.index");
  ASSERT_EQ(mkfifo((dir_ / "2/variables/variables.index").c_str(), 0600), 0);
  EXPECT_THAT(Text(), HasSubstr("2 (variables/variables.index is not a regular file)"));
}

TEST_F(LocalSourceTest, TextGraphsAndOldBundlesAreForTheWorkerToJudge) {
  WriteFile(dir_ / "1/saved_model.pbtxt", "saved_model_schema_version: 1");
  WriteFile(dir_ / "2/export.meta", "x");
  EXPECT_EQ(Text(), "2, 1");
}

TEST_F(LocalSourceTest, AChangedFileChangesTheFingerprint) {
  WriteVersion(dir_ / "1");
  query_.closely = true;
  const uint64_t before = List().versions[0].fingerprint;
  EXPECT_EQ(List().versions[0].fingerprint, before);
  WriteFile(dir_ / "1/assets/vocabulary.txt", "words");
  const uint64_t after = List().versions[0].fingerprint;
  EXPECT_NE(after, before);
  fs::permissions(dir_ / "1/assets/vocabulary.txt", fs::perms::owner_read);
  EXPECT_NE(List().versions[0].fingerprint, after);
}

TEST_F(LocalSourceTest, ChangesInPlaceAreFoundByTheFullLook) {
  WriteVersion(dir_ / "1");
  const uint64_t before = List().versions[0].fingerprint;
  WriteFile(dir_ / "1/saved_model.pb", MakeGraph("another graph"));
  int looks = 0;
  while (List().versions[0].fingerprint == before && looks < 100) ++looks;
  EXPECT_LT(looks, 11);
}

TEST_F(LocalSourceTest, ANewVersionIsFoundAtTheNextLook) {
  WriteVersion(dir_ / "1");
  EXPECT_EQ(Text(), "1");
  WriteVersion(dir_ / "2");
  EXPECT_THAT(Text(), testing::StartsWith("2"));
}

TEST_F(LocalSourceTest, LoopsOfLinksEnd) {
  WriteVersion(dir_ / "1");
  fs::create_directory_symlink("..", dir_ / "1/loop");
  EXPECT_EQ(Text(), "1");
}

TEST_F(LocalSourceTest, LooksAtWhatThePolicyMayWant) {
  for (int i = 1; i <= 40; ++i) WriteVersion(dir_ / std::to_string(i));
  query_.also = {3};
  size_t complete = 0;
  for (const FoundVersion& found : List().versions) complete += found.complete ? 1 : 0;
  EXPECT_EQ(complete, 18) << "1 wanted, 16 spare, 1 labelled";
  query_.policy = {.kind = VersionPolicy::Kind::kSpecific, .specific = {7}};
  query_.also.clear();
  complete = 0;
  for (const FoundVersion& found : List().versions) complete += found.complete ? 1 : 0;
  EXPECT_EQ(complete, 1);
}

TEST_F(LocalSourceTest, WarnsOfAVersionThatThePolicyNamesAndThatIsNotThere) {
  WriteVersion(dir_ / "1");
  query_.policy = {.kind = VersionPolicy::Kind::kSpecific, .specific = {1, 7}};
  EXPECT_THAT(List().warnings, ElementsAre(HasSubstr("version 7, which the version policy")));
  WriteVersion(dir_ / "7");
  EXPECT_THAT(List().warnings, IsEmpty());
  query_.policy.specific = {8, 9};
  EXPECT_THAT(List().warnings, IsEmpty()) << "that is the model's error, which names both";
}

TEST_F(LocalSourceTest, NamesThePathThatCannotBeListed) {
  query_.base_path = (dir_ / "nowhere").string();
  EXPECT_EQ(source_.List(query_).status(),
            absl::NotFoundError(base::Cat("base path ", query_.base_path, " does not exist")));
  WriteFile(dir_ / "file", "x");
  query_.base_path = (dir_ / "file").string();
  EXPECT_EQ(source_.List(query_).status().code(), absl::StatusCode::kNotFound);
  query_.base_path = "gs://bucket/model";
  EXPECT_EQ(source_.List(query_).status().code(), absl::StatusCode::kUnimplemented);
  WriteVersion(dir_ / "m/1");
  query_.base_path = "file://" + (dir_ / "m").string();
  EXPECT_EQ(Text(), "1");
}

}  // namespace
}  // namespace tensord::models
