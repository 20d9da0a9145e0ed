// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/scanner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>

#include "base/limits.h"
#include "base/text.h"
#include "models/lane.h"
#include "models/testing/saved_model_files.h"

namespace tensord::models {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);  // Of a test, on a busy machine.

class ScannerTest : public testing::Test {
 protected:
  ScannerTest() {
    std::string name = fs::temp_directory_path() / "tensord_scanner_XXXXXX";
    dir_ = mkdtemp(name.data());
  }
  ~ScannerTest() override {
    scanner_.reset();
    fs::remove_all(dir_);
  }

  void Make(absl::Duration period, Scanner::MakeSource make = nullptr) {
    if (make == nullptr) make = [period] { return MakeLocalSource(period); };
    scanner_ = std::make_unique<Scanner>(
        *loop_, period, std::move(make),
        [this](const std::string& model, const std::string&, absl::StatusOr<Listing> listing) {
          ++reports_[model];
          last_[model] = std::move(listing);
        });
  }
  static WatchedPath Path(const std::string& model, const std::string& base_path) {
    WatchedPath path;
    path.model = model;
    path.query.base_path = base_path;
    return path;
  }
  // Runs the loop until `done`; false when that takes too long.
  bool Until(const std::function<bool()>& done) {
    const absl::Time end = base::MonotonicClock().Now() + kPatience;
    while (!done() && base::MonotonicClock().Now() < end) {
      loop_->RunOnce(base::MonotonicClock().Now() + absl::Milliseconds(100));
    }
    return done();
  }
  bool Complete(const std::string& model, int64_t number) {
    const auto at = last_.find(model);
    if (at == last_.end() || !at->second.ok()) return false;
    for (const FoundVersion& found : at->second->versions) {
      if (found.number == number) return found.complete;
    }
    return false;
  }

  fs::path dir_;
  std::unique_ptr<loop::EventLoop> loop_ = *loop::EventLoop::Create();
  std::map<std::string, int> reports_;
  std::map<std::string, absl::StatusOr<Listing>> last_;
  std::unique_ptr<Scanner> scanner_;
};

TEST_F(ScannerTest, AnotherLookIsReportedThoughNothingChanged) {
  WriteVersion(dir_ / "1");
  Make(absl::Seconds(3600));
  WatchedPath path = Path("m", dir_);
  scanner_->Watch({path});
  ASSERT_TRUE(Until([&] { return Complete("m", 1); }));
  last_.clear();
  path.look = 1;
  scanner_->Watch({path});
  EXPECT_TRUE(Until([&] { return Complete("m", 1); }));
}

TEST_F(ScannerTest, TheKernelTellsOfAVersionThatIsRenamedIntoPlace) {
  fs::create_directories(dir_ / "m");
  Make(absl::Hours(1));  // Polling alone would find nothing during this test.
  scanner_->Watch({Path("m", (dir_ / "m").string())});
  ASSERT_TRUE(Until([&] { return reports_["m"] > 0; }));
  // Its watch is set by the same look; one more look follows that.
  WriteVersion(dir_ / "staging");
  fs::rename(dir_ / "staging", dir_ / "m/1");
  EXPECT_TRUE(Until([&] { return Complete("m", 1); }));
}

TEST_F(ScannerTest, AVersionThatIsCopiedIsTakenWhenItIsWhole) {
  fs::create_directories(dir_ / "m");
  Make(absl::Hours(1));
  scanner_->Watch({Path("m", (dir_ / "m").string())});
  ASSERT_TRUE(Until([&] { return reports_["m"] > 0; }));
  WriteFile(dir_ / "m/1/saved_model.pb", MakeGraph("a graph with a VarHandleOp"));
  ASSERT_TRUE(Until([&] { return last_["m"].ok() && !last_["m"]->versions.empty(); }));
  EXPECT_FALSE(Complete("m", 1));
  WriteVersion(dir_ / "m/1");
  EXPECT_TRUE(Until([&] { return Complete("m", 1); }));
}

TEST_F(ScannerTest, APathThatAppearsLaterIsFoundByPolling) {
  Make(absl::Milliseconds(50));
  scanner_->Watch({Path("m", (dir_ / "later").string())});
  ASSERT_TRUE(Until([&] { return reports_["m"] > 0; }));
  EXPECT_EQ(last_["m"].status().code(), absl::StatusCode::kNotFound);
  WriteVersion(dir_ / "later/1");
  EXPECT_TRUE(Until([&] { return Complete("m", 1); }));
  fs::remove_all(dir_ / "later");
  EXPECT_TRUE(Until([&] { return !last_["m"].ok(); }));
}

TEST_F(ScannerTest, WithoutPollingEachWatchLooksUntilAllIsSettled) {
  WriteVersion(dir_ / "m/1");
  Make(absl::ZeroDuration());
  const std::vector<WatchedPath> paths = {Path("m", (dir_ / "m").string())};
  scanner_->Watch(paths);
  ASSERT_TRUE(Until([&] { return Complete("m", 1); }));
  WriteVersion(dir_ / "m/2");
  scanner_->Watch(paths);
  EXPECT_TRUE(Until([&] { return Complete("m", 2); }));
}

TEST_F(ScannerTest, WhatIsNotWatchedAnyMoreIsNotReported) {
  WriteVersion(dir_ / "a/1");
  WriteVersion(dir_ / "b/1");
  Make(absl::Milliseconds(20));
  scanner_->Watch({Path("a", (dir_ / "a").string()), Path("b", (dir_ / "b").string())});
  ASSERT_TRUE(Until([&] { return Complete("a", 1) && Complete("b", 1); }));
  scanner_->Watch({Path("b", (dir_ / "b").string())});
  const int before = reports_["a"];
  WriteVersion(dir_ / "a/2");
  WriteVersion(dir_ / "b/2");
  ASSERT_TRUE(Until([&] { return Complete("b", 2); }));
  EXPECT_EQ(reports_["a"], before);
}

// Hangs on one base path until the test lets it go.
class HangingSource final : public VersionSource {
 public:
  explicit HangingSource(int gate) : gate_(gate) {}
  absl::StatusOr<Listing> List(const SourceQuery& query) override {
    char byte = 0;
    if (query.base_path.find("hang") != std::string::npos && read(gate_, &byte, 1) < 0)
      return Listing();
    Listing listing;
    listing.versions = {{.number = 1, .complete = true, .fingerprint = 1}};
    return listing;
  }

 private:
  const int gate_;
};

TEST_F(ScannerTest, AHangingFileSystemIsSaidAndDelaysOnlyItself) {
  int gate[2];
  ASSERT_EQ(pipe2(gate, O_CLOEXEC), 0);
  Make(absl::Milliseconds(50), [&] { return std::make_unique<HangingSource>(gate[0]); });
  // /proc is a file system of its own.
  scanner_->Watch({Path("stuck", "/proc/hang"), Path("fine", dir_.string())});
  ASSERT_TRUE(Until([&] { return Complete("fine", 1) && reports_["stuck"] > 0; }));
  EXPECT_EQ(last_["stuck"].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(base::Message(last_["stuck"].status())),
              HasSubstr("its file system hangs"));
  EXPECT_EQ(reports_["stuck"], 1) << "said once";
  ASSERT_EQ(write(gate[1], "x", 1), 1);
  EXPECT_TRUE(Until([&] { return Complete("stuck", 1); }));
  // The next look hangs again: the end does not wait for it.
  scanner_.reset();
  close(gate[1]);
}

TEST(MountedDevice, IsThatOfTheLongestMountPoint) {
  constexpr std::string_view kTable =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 0:44 / /models rw - nfs host:/models rw\n"
      "24 23 0:45 / /models/a rw - nfs host:/a rw\n"
      "broken line\n";
  EXPECT_EQ(MountedDevice("/models/a/x", kTable), makedev(0, 45));
  EXPECT_EQ(MountedDevice("/models/ab", kTable), makedev(0, 44));
  EXPECT_EQ(MountedDevice("/models", kTable), makedev(0, 44));
  EXPECT_EQ(MountedDevice("/home", kTable), makedev(8, 1));
  EXPECT_EQ(MountedDevice("gs://x", kTable), 0);
}

}  // namespace
}  // namespace tensord::models
