// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/limits.h"
#include "channel/packet_socket.h"
#include "engine/testing/fake_engine.h"
#include "worker/completion_batch.h"
#include "worker/environment.h"
#include "worker/landlock.h"
#include "worker/last_words.h"
#include "worker/memory_use.h"
#include "worker/probe.h"
#include "worker/sandbox.h"
#include "worker/side_file.h"
#include "worker/warm_up.h"

namespace tensord::worker {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(CompletionBatch, QuickRunsOfOneSignatureWaitForEachOther) {
  CompletionBatch batch;
  const absl::Time t0 = absl::UnixEpoch();
  batch.Add({}, t0);
  EXPECT_FALSE(batch.Due(t0, absl::Microseconds(3), true));
  EXPECT_FALSE(batch.Due(t0 + absl::Microseconds(49), absl::Microseconds(3), true));
  EXPECT_TRUE(batch.Due(t0 + absl::Microseconds(50), absl::Microseconds(3), true));
  EXPECT_TRUE(batch.Due(t0, absl::Microseconds(21), true));
  EXPECT_TRUE(batch.Due(t0, absl::Microseconds(3), false));
  EXPECT_EQ(batch.Take().completions.size(), 1u);
  EXPECT_TRUE(batch.empty());
}

TEST(CompletionBatch, KeepsToTheRecordsSize) {
  CompletionBatch batch;
  channel::Completion large;
  large.status = absl::InternalError(std::string(4000, 'x'));
  size_t count = 0;
  for (; !batch.FullFor(large); ++count) batch.Add(large, absl::UnixEpoch());
  EXPECT_GT(count, 10u);
  EXPECT_LE(channel::Encode(1, channel::ToFront(batch.Take())).size(), limits::kRecordBytesMax);
}

TEST(KeepsVariable, KnowsTheRuntimesVariables) {
  for (const char* kept : {"TF_ENABLE_ONEDNN_OPTS=1", "CUDA_VISIBLE_DEVICES=0", "XLA_FLAGS=--x",
                           "NVIDIA_TF32_OVERRIDE=0", "OMP_NUM_THREADS=1", "KMP_AFFINITY=x",
                           "MALLOC_ARENA_MAX=2", "LD_LIBRARY_PATH=/x", "XLA_FLAGS"}) {
    EXPECT_TRUE(KeepsVariable(kept)) << kept;
  }
  for (const char* dropped : {"HOME=/root", "AWS_SECRET_ACCESS_KEY=x", "PATH=/bin", "XLA_FLAGS2=x",
                              "MY_TF_X=1", "LD_PRELOAD=x", "=TF_", ""}) {
    EXPECT_FALSE(KeepsVariable(dropped)) << dropped;
  }
}

TEST(RightsOfAbi, GrowWithTheAbi) {
  EXPECT_EQ(RightsOfAbi(1).files, 0x1fffu);
  EXPECT_EQ(RightsOfAbi(2).files, 0x3fffu);
  EXPECT_EQ(RightsOfAbi(3).files, 0x7fffu);
  EXPECT_EQ(RightsOfAbi(3).network, 0u);
  EXPECT_EQ(RightsOfAbi(4).network, 3u);
  EXPECT_EQ(RightsOfAbi(5).files, 0xffffu);
  EXPECT_EQ(RightsOfAbi(5).scopes, 0u);
  EXPECT_EQ(RightsOfAbi(6).scopes, 3u);
  EXPECT_EQ(RightsOfAbi(99).files, 0xffffu);
}

TEST(ReadablePlaces, AreTheModelsTheRuntimesAndTheSystems) {
  channel::LoadRecord record;
  record.directory = "/models/m/1";
  record.op_libraries = {"/ops/a.so"};
  const std::vector<std::string> places = ReadablePlaces("/opt/tf", record);
  EXPECT_THAT(places, IsSupersetOf({"/models/m/1", "/opt/tf", "/ops/a.so", "/proc/self"}));
  EXPECT_THAT(places, Not(Contains("/ops")));
  EXPECT_THAT(places, Not(Contains("/")));
  EXPECT_THAT(places, Not(Contains("/etc")));
}

TEST(ParsePrivateBytes, SumsCleanAndDirty) {
  EXPECT_EQ(ParsePrivateBytes("Rss:   10 kB\nPrivate_Clean:     3 kB\nPrivate_Dirty:   40 kB\n"),
            43u * 1024);
  EXPECT_EQ(ParsePrivateBytes(""), 0u);
  EXPECT_EQ(ParsePrivateBytes("Private_Dirty:"), 0u);
  EXPECT_GT(PrivateBytes(), 0u);
}

TEST(Summarize, CountsRefusalsAndNamesTheRest) {
  EXPECT_THAT(Summarize({{.act = "open a", .refused = true, .seen = "EACCES"},
                         {.act = "fork", .refused = false, .seen = "it worked"}},
                        absl::Microseconds(90)),
              ElementsAre("probe: 1 of 2 forbidden acts refused, in 90 us",
                          "probe: NOT refused: fork (it worked)"));
}

TEST(WarmUpShapes, OpenDimsBecomeRowsThenOnes) {
  tensor::Signature signature;
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{-1, -1, 3}, std::vector<int64_t>{2, -1}, std::vector<int64_t>{}}) {
    tensor::Endpoint& input = signature.inputs.emplace_back();
    input.dtype = tensor::DType::kFloat;
    input.shape = {.unknown_rank = false, .dims = dims};
  }
  signature.inputs.emplace_back().dtype = tensor::DType::kString;  // Of unknown rank.
  const auto shapes = WarmUpShapes(signature, 8);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(*shapes, ElementsAre(tensor::Shape{8, 1, 3}, tensor::Shape{2, 1}, tensor::Shape{},
                                   tensor::Shape{8}));
  signature.inputs[0].dense = false;
  EXPECT_TRUE(absl::IsUnimplemented(WarmUpShapes(signature, 1).status()));
}

TEST(WarmUp, RunsAndTimesEqualShapesOnceAndLeavesTheInitOperationAlone) {
  engine::FakeModelSpec spec;
  std::vector<std::string> ran;
  for (const auto& [name, dim] :
       {std::pair{"__saved_model_init_op", 1}, std::pair{"fixed", 2}, std::pair{"huge", 1 << 30}}) {
    tensor::Signature& signature = spec.signatures.emplace_back();
    signature.name = name;
    tensor::Endpoint& input = signature.inputs.emplace_back();
    input.dtype = tensor::DType::kFloat;
    input.shape = {.unknown_rank = false, .dims = {dim}};
  }
  spec.run = [&](int signature, std::span<const tensor::TensorView> inputs) {
    ran.push_back(std::to_string(signature) + inputs[0].shape.ToString());
    return std::vector<tensor::Tensor>();
  };
  engine::FakeModel model(std::move(spec));
  const std::vector<int64_t> rows = {1, 8};
  const WarmUpReport report = WarmUp(model, rows, base::MonotonicClock());
  EXPECT_THAT(ran, ElementsAre("1[2]", "1[2]", "1[2]", "1[2]")) << "the first warms it up";
  EXPECT_EQ(report.runs, 1u);
  ASSERT_EQ(report.run_times.size(), 1u);
  EXPECT_EQ(report.run_times[0].signature, 1u);
  EXPECT_EQ(report.run_times[0].rows, 1);
  EXPECT_GT(report.run_times[0].nanoseconds, 0u);
  EXPECT_THAT(report.warnings, ElementsAre(::testing::HasSubstr("'huge'")));
}

// In a child, whose end is looked at.
template <typename Act>
int StatusOfChild(Act act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(ReadSideFile, TellsAMissingFileFromAnUnreadableOne) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("side_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "directory");
  std::ofstream(folder / "small") << "text";
  std::ofstream(folder / "large") << std::string(limits::kSideFileBytesMax + 1, 'x');
  EXPECT_EQ(ReadSideFile(folder, "small").value(), "text");
  EXPECT_EQ(ReadSideFile(folder, "missing").value(), std::nullopt);
  EXPECT_FALSE(ReadSideFile(folder, "large").ok());
  EXPECT_FALSE(ReadSideFile(folder, "directory").ok());
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(ReadSideFile(folder, "fifo").value(), "");  // And does not wait for a writer.
  std::filesystem::remove_all(folder);
}

TEST(SpeakLastWords, ARecordOfTheSignalComesBeforeTheEnd) {
  auto ends = channel::PacketSocket::Pair();
  ASSERT_TRUE(ends.ok());
  const int fd = ends->second.fd();
  const int status = StatusOfChild([fd] {
    SpeakLastWords(fd, 5);
    abort();
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  const auto packet = ends->first.Receive(limits::kRecordBytesMax, 0);
  ASSERT_TRUE(packet.ok());
  const auto record = channel::DecodeToFront(packet->bytes, 5);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(std::get<channel::DyingRecord>(*record).signal, SIGABRT);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(TENSORD_TSAN)
// Deeper than any stack, and not as a loop.
__attribute__((noinline)) int Recurse(volatile char* above, int64_t depth) {
  volatile char here[4096];
  here[0] = above[0];
  return depth == 0 ? 0 : Recurse(here, depth - 1) + here[0];
}

TEST(SignalStack, AnOverflownStackStillSpeaks) {
  auto ends = channel::PacketSocket::Pair();
  ASSERT_TRUE(ends.ok());
  const int fd = ends->second.fd();
  const int status = StatusOfChild([fd] {
    const SignalStack stack;
    SpeakLastWords(fd, 5);
    volatile char bottom = 0;
    _exit(Recurse(&bottom, INT64_MAX));
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  const auto packet = ends->first.Receive(limits::kRecordBytesMax, 0);
  ASSERT_TRUE(packet.ok());
  EXPECT_TRUE(channel::DecodeToFront(packet->bytes, 5).ok());
}
#endif

}  // namespace
}  // namespace tensord::worker
