// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/linked_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tensord::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class LinkedFilesTest : public ::testing::Test {
 protected:
  LinkedFilesTest()
      : root_(fs::canonical(testing::TempDir()) / "linked_files_test"),
        version_(root_ / "model/1"),
        store_(root_ / "store") {
    fs::remove_all(root_);
    fs::create_directories(version_ / "variables");
    fs::create_directories(store_);
  }
  ~LinkedFilesTest() override { fs::remove_all(root_); }

  std::string Store(const std::string& name) {
    std::ofstream(store_ / name) << name;
    return store_ / name;
  }

  const fs::path root_;
  const fs::path version_;
  const fs::path store_;
};

TEST_F(LinkedFilesTest, PlainFilesNeedNothing) {
  std::ofstream(version_ / "saved_model.pb") << "x";
  const LinkedFiles found = FindLinkedFiles(version_);
  EXPECT_THAT(found.places, IsEmpty());
  EXPECT_THAT(found.refused, IsEmpty());
}

TEST_F(LinkedFilesTest, LinksOfTheModelsFilesAreFollowedToTheirEnd) {
  fs::create_symlink(Store("a1"), store_ / "again");
  fs::create_symlink(store_ / "again", version_ / "saved_model.pb");
  fs::create_symlink(Store("b2"), version_ / "variables/variables.index");
  fs::create_symlink(Store("c3"), version_ / "variables/variables.data-00000-of-00001");
  fs::create_symlink(Store("d4"), version_ / "not_of_a_model");
  EXPECT_THAT(FindLinkedFiles(version_).places,
              UnorderedElementsAre(store_ / "a1", store_ / "b2", store_ / "c3"));
}

TEST_F(LinkedFilesTest, AFolderMayBeALinkToo) {
  fs::create_directories(store_ / "v");
  fs::remove(version_ / "variables");
  fs::create_symlink(store_ / "v", version_ / "variables");
  fs::create_symlink(Store("b2"), store_ / "v/variables.index");
  EXPECT_THAT(FindLinkedFiles(version_).places, ElementsAre(store_ / "v", store_ / "b2"));
}

TEST_F(LinkedFilesTest, WhatIsNoFileAndWhatLeadsNowhereIsNotFollowed) {
  fs::create_symlink(store_, version_ / "saved_model.pb");
  fs::create_symlink(store_ / "gone", version_ / "fingerprint.pb");
  fs::create_symlink("loop", version_ / "variables/loop");
  const LinkedFiles found = FindLinkedFiles(version_);
  EXPECT_THAT(found.places, IsEmpty());
  EXPECT_THAT(found.refused, ElementsAre(HasSubstr("saved_model.pb -> ")));
}

TEST_F(LinkedFilesTest, AnothersSecretIsNotReadForWhoeverMadeTheLink) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  const std::string secret = Store("secret");
  ASSERT_EQ(chmod(secret.c_str(), 0600), 0);
  fs::create_symlink(secret, version_ / "saved_model.pb");
  ASSERT_EQ(lchown((version_ / "saved_model.pb").c_str(), 12345, 12345), 0);
  const LinkedFiles refused = FindLinkedFiles(version_);
  EXPECT_THAT(refused.places, IsEmpty());
  EXPECT_THAT(refused.refused, ElementsAre(HasSubstr("belongs to another user")));
  ASSERT_EQ(chmod(secret.c_str(), 0644), 0);
  EXPECT_THAT(FindLinkedFiles(version_).places, ElementsAre(secret));
}

}  // namespace
}  // namespace tensord::worker
