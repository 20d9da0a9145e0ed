// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/limits.h"
#include "base/text.h"
#include "base/tf_record.h"
#include "front/handlers/access_log.h"
#include "front/handlers/record_file.h"

namespace tensord::front {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1000);

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Folder : public ::testing::Test {
 protected:
  Folder() : path_(std::filesystem::path(::testing::TempDir()) / Name()) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() override { std::filesystem::remove_all(path_); }

  static std::string Name() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  const std::filesystem::path path_;
};

TEST(AccessLine, IsOneJsonObjectWhateverTheClientSent) {
  const AccessEntry entry{.code = absl::StatusCode::kNotFound,
                          .http_status = 404,
                          .peer = "127.0.0.1:1",
                          .http_method = "GET",
                          .target = "/v1/\"},{\"a\":\"\n\xff",
                          .bytes_in = 3,
                          .total = absl::Microseconds(20)};
  EXPECT_EQ(FormatAccess(entry, absl::UnixEpoch() + absl::Microseconds(5)),
            "{\"time\":\"1970-01-01T00:00:00.000005Z\",\"protocol\":\"rest\","
            "\"peer\":\"127.0.0.1:1\",\"http_method\":\"GET\","
            "\"target\":\"/v1/\\\"},{\\\"a\\\":\\\"\\n?\",\"method\":\"other\","
            "\"status\":\"NOT_FOUND\",\"http_status\":404,\"delivered\":true,\"bytes_in\":3,"
            "\"bytes_out\":0,\"total_us\":20}");
}

TEST(AccessLine, HasTheStagesAndWhatWasMatched) {
  AccessEntry entry{.method = obs::Method::kPredict, .model = "half", .version = 3};
  entry.stages.emplace();
  (*entry.stages)[static_cast<size_t>(obs::Stage::kRun)] = absl::Microseconds(7);
  entry.rows = 2;
  const std::string line = FormatAccess(entry, absl::UnixEpoch());
  EXPECT_THAT(line, HasSubstr("\"model\":\"half\",\"version\":3,"));
  EXPECT_THAT(line, HasSubstr("\"queue_us\":0,\"run_us\":7,\"write_us\":0"));
  EXPECT_THAT(line, HasSubstr("\"rows\":2"));
  EXPECT_THAT(line, Not(HasSubstr("signature")));
}

using AccessLogFile = Folder;

TEST_F(AccessLogFile, KeepsItsLinesAcrossARename) {
  const std::string path = path_ / "log";
  auto log = AccessLog::Open(path);
  ASSERT_TRUE(log.ok());
  (*log)->Write({.peer = "one"});
  (*log)->Flush(absl::Seconds(30));
  std::filesystem::rename(path, path_ / "log.1");
  (*log)->Reopen();
  (*log)->Write({.peer = "two"});
  (*log)->Flush(absl::Seconds(30));
  EXPECT_THAT(ReadAll(path_ / "log.1"), HasSubstr("one"));
  EXPECT_THAT(ReadAll(path_ / "log.1"), Not(HasSubstr("two")));
  EXPECT_THAT(ReadAll(path), HasSubstr("two"));
  EXPECT_EQ((*log)->lines(), 2);
  EXPECT_EQ((*log)->dropped(), 0);
}

TEST_F(AccessLogFile, NamesAPathThatCannotBeOpened) {
  const auto log = AccessLog::Open(path_ / "nowhere" / "log");
  EXPECT_EQ(log.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(base::Message(log.status())), HasSubstr("nowhere/log: No such file"));
}

TEST_F(AccessLogFile, ALineThatAFullDiskCutIsGluedToNoOther) {
  const std::string path = path_ / "log";
  auto log = AccessLog::Open(path);
  ASSERT_TRUE(log.ok());
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  (*log)->Write({.peer = "cut"});
  (*log)->Flush(absl::Seconds(30));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  (*log)->Write({.peer = "whole"});
  (*log)->Flush(absl::Seconds(30));
  const std::string text = ReadAll(path);
  EXPECT_EQ(text.find('\n'), 100u) << text;
  EXPECT_THAT(text.substr(101), StartsWith("{\"dropped_lines\":1}\n{\"time\""));
  EXPECT_THAT(text, EndsWith("}\n"));
}

TEST_F(AccessLogFile, APipeThatNobodyReadsIsAnErrorAtOnce) {
  const std::string path = path_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(AccessLog::Open(path).status().code(), absl::StatusCode::kInvalidArgument);
}

using RecordFiles = Folder;

TEST_F(RecordFiles, GetTheirNameWhenTheyAreComplete) {
  RecordFile file(path_ / "half");
  EXPECT_TRUE(file.Append("abc", kNow, kNow).ok());
  EXPECT_THAT(Names(), ElementsAre(EndsWith("-0.tfrecord.partial")));
  file.CompleteIfOld(kNow + limits::kRecordFileAgeMax - absl::Seconds(1));
  EXPECT_THAT(Names(), ElementsAre(EndsWith(".partial")));
  file.CompleteIfOld(kNow + limits::kRecordFileAgeMax);
  ASSERT_THAT(Names(), ElementsAre(EndsWith("-0.tfrecord")));
  EXPECT_THAT(Names()[0], HasSubstr("half-19700211T160000-"));
  std::string expected;
  base::AppendTfRecord("abc", &expected);
  EXPECT_EQ(ReadAll(path_ / Names()[0]), expected);
}

TEST_F(RecordFiles, AFullFileMakesRoomForTheNext) {
  RecordFile file(path_ / "half");
  const std::string large(limits::kRecordFileBytesMax, 'x');
  EXPECT_TRUE(file.Append(large, kNow, kNow).ok());
  EXPECT_THAT(Names(), ElementsAre(EndsWith("-0.tfrecord")));
  EXPECT_TRUE(file.Append("abc", kNow, kNow).ok());
  EXPECT_THAT(Names(), ElementsAre(EndsWith("-0.tfrecord"), EndsWith("-1.tfrecord.partial")));
}

TEST_F(RecordFiles, TheOldestGoAndNothingElse) {
  for (const char* name : {"half-old.tfrecord", "half_more-19700101T000000-1-1.tfrecord"}) {
    std::ofstream(path_ / name) << "not ours";
  }
  RecordFile file(path_ / "half");
  const size_t kept = limits::kRecordFilesKept;
  for (size_t i = 0; i < kept + 3; ++i) {
    EXPECT_TRUE(file.Append("abc", kNow + absl::Seconds(static_cast<int64_t>(i)), kNow).ok());
    file.Complete();
  }
  EXPECT_THAT(Names(), SizeIs(kept + 2));
  EXPECT_TRUE(std::filesystem::exists(path_ / "half-old.tfrecord"));
  EXPECT_THAT(Names()[0], Not(HasSubstr("160000")));
  EXPECT_THAT(Names()[0], HasSubstr("half-19700211T160003-"));
}

TEST_F(RecordFiles, AnErrorNamesTheFileAndTheNextRecordIsTriedAgain) {
  RecordFile file(path_ / "later" / "half");
  const absl::Status status = file.Append("abc", kNow, kNow);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(base::Message(status)), HasSubstr("later/half-"));
  EXPECT_THAT(Names(), IsEmpty());
  std::filesystem::create_directories(path_ / "later");
  EXPECT_TRUE(file.Append("abc", kNow, kNow).ok());
}

}  // namespace
}  // namespace tensord::front
