// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/find_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace tensord::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class FindRuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char place[] = "/tmp/tensord_runtime_XXXXXX";
    ASSERT_NE(mkdtemp(place), nullptr);
    root_ = place;
    places_.system_roots = {Path("usr")};
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Path(const std::string& below) const { return root_ + "/" + below; }
  // An empty file stands for a library.
  void Put(const std::string& directory, std::initializer_list<const char*> libraries) {
    fs::create_directories(Path(directory));
    for (const char* library : libraries) std::ofstream(Path(directory) + "/" + library) << "";
  }
  void PutBoth(const std::string& directory) {
    Put(directory, {kFrameworkLibrary, kRuntimeLibrary});
  }

  std::string root_;
  RuntimePlaces places_;
};

TEST_F(FindRuntimeTest, TheExplicitDirectoryWinsAndNothingElseIsTried) {
  PutBoth("usr/lib/python3.11/site-packages/tensorflow");
  PutBoth("named");
  places_.explicit_directory = Path("named");
  EXPECT_EQ(*FindRuntime(places_), Path("named"));
  places_.explicit_directory = Path("elsewhere");
  const auto missing = FindRuntime(places_);
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(base::Message(missing.status())), HasSubstr("elsewhere"));
}

TEST_F(FindRuntimeTest, TheOrderIsEnvironmentBinaryVirtualEnvSystem) {
  PutBoth("usr/lib/python3.11/dist-packages/tensorflow");
  EXPECT_EQ(*FindRuntime(places_), Path("usr/lib/python3.11/dist-packages/tensorflow"));
  PutBoth("venv/lib/python3.9/site-packages/tensorflow");
  places_.virtual_env = Path("venv");
  EXPECT_EQ(*FindRuntime(places_), Path("venv/lib/python3.9/site-packages/tensorflow"));
  PutBoth("bin");
  places_.binary_directory = Path("bin");
  EXPECT_EQ(*FindRuntime(places_), Path("bin"));
  PutBoth("env/tensorflow");
  places_.environment_directory = Path("env");  // The parent of the package will do.
  EXPECT_EQ(*FindRuntime(places_), Path("env/tensorflow"));
}

TEST_F(FindRuntimeTest, ANewerPythonComesFirst) {
  PutBoth("usr/lib/python3.9/site-packages/tensorflow");
  PutBoth("usr/lib/python3.11/site-packages/tensorflow");
  EXPECT_EQ(*FindRuntime(places_), Path("usr/lib/python3.11/site-packages/tensorflow"));
}

TEST_F(FindRuntimeTest, HalfARuntimeIsNoneAndIsTold) {
  Put("usr/lib/python3.11/site-packages/tensorflow", {kFrameworkLibrary});
  Put("bin", {kRuntimeLibrary});
  places_.binary_directory = Path("bin");
  const auto candidates = LookForRuntime(places_);
  ASSERT_THAT(candidates, SizeIs(2));
  EXPECT_EQ(candidates[0].missing, kFrameworkLibrary);
  EXPECT_FALSE(candidates[1].missing.empty());
  EXPECT_THAT(std::string(base::Message(FindRuntime(places_).status())),
              HasSubstr("--tensorflow_library_dir"));
}

}  // namespace
}  // namespace tensord::engine
