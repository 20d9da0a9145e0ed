// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/text.h"
#include "tests/worker/process_test.h"

// What a worker costs. The bounds are several times what was measured: they catch a change in kind,
// not noise; the figures are printed.
namespace tensord::testing {
namespace {

class CostsTest : public ProcessTest {};

// Of a smaps_rollup, in bytes.
uint64_t MemoryOf(pid_t pid, const std::string& key) {
  std::ifstream file(base::Cat("/proc/", pid, "/smaps_rollup"));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

uint64_t PrivateOf(pid_t pid) {
  return MemoryOf(pid, "Private_Clean") + MemoryOf(pid, "Private_Dirty");
}

TEST_F(CostsTest, AWorkerStartsQuickly) {
  ASSERT_NE(Fork(), nullptr);  // Waits for the zygote to be ready.
  std::vector<absl::Duration> starts;
  for (int i = 0; i < 20; ++i) {
    const auto worker = Fork();
    ASSERT_NE(worker, nullptr);
    starts.push_back(worker->start());
  }
  std::sort(starts.begin(), starts.end());
  GTEST_LOG_(INFO) << "fork request to hello: min " << starts.front() << ", median " << starts[10]
                   << ", max " << starts.back();
  EXPECT_LT(starts.front(), absl::Milliseconds(20)) << "what it costs where nothing else runs";
  EXPECT_LT(starts[10], absl::Milliseconds(100)) << "on a machine that is busy";
}

TEST_F(CostsTest, AWorkerAddsLittleMemoryToItsModel) {
  const auto empty = Fork();
  ASSERT_NE(empty, nullptr);
  GTEST_LOG_(INFO) << "zygote: PSS " << MemoryOf(zygote().pid(), "Pss") / 1024 << " KiB, RSS "
                   << MemoryOf(zygote().pid(), "Rss") / 1024 << " KiB; fresh worker: private "
                   << PrivateOf(empty->pid()) / 1024 << " KiB";
  const auto worker = Load("half/1");
  ASSERT_NE(worker, nullptr);
  GTEST_LOG_(INFO) << "worker with half: private " << worker->info().private_bytes / 1024
                   << " KiB as it says itself, " << PrivateOf(worker->pid()) / 1024
                   << " KiB from outside; PSS " << MemoryOf(worker->pid(), "Pss") / 1024
                   << " KiB; load " << worker->info().load_microseconds << " us, warm-up "
                   << worker->info().warm_up_microseconds << " us";
  EXPECT_GT(worker->info().private_bytes, 1u << 20);
  EXPECT_LT(worker->info().private_bytes, 20u << 20);
  const auto big = Load("big_64/1");
  ASSERT_NE(big, nullptr);
  GTEST_LOG_(INFO) << "worker with 64 MB of variables: private " << big->info().private_bytes / 1024
                   << " KiB, load " << big->info().load_microseconds << " us";
  EXPECT_LT(big->info().private_bytes, 150u << 20);
}

TEST_F(CostsTest, ARunCostsMicroseconds) {
  for (const auto& [model, elements] :
       {std::pair{"bench_identity/1", 16}, std::pair{"bench_mlp/1", 64}}) {
    const auto worker = Load(model);
    ASSERT_NE(worker, nullptr);
    const tensor::Tensor x = MakeTensor(tensor::DType::kFloat, {1, elements},
                                        std::vector<float>(static_cast<size_t>(elements), 1));
    std::vector<absl::Duration> trips;
    uint64_t fastest = UINT64_MAX;
    for (int i = 0; i < 2000; ++i) {
      const absl::Time begun = base::MonotonicClock().Now();
      const auto answer = worker->Run("serving_default", {&x});
      ASSERT_TRUE(answer.ok() && answer->completion.status.ok());
      trips.push_back(base::MonotonicClock().Now() - begun);
      fastest = std::min(fastest, answer->completion.run_nanoseconds);
    }
    std::sort(trips.begin(), trips.end());
    GTEST_LOG_(INFO) << model << ": round trip median " << trips[trips.size() / 2]
                     << ", fastest run " << fastest << " ns";
    EXPECT_LT(trips[trips.size() / 2], absl::Milliseconds(5));
  }
}

// CPU time of a process, of all its threads.
double CpuSeconds(pid_t pid) {
  double total = 0;
  for (const auto& task : std::filesystem::directory_iterator(base::Cat("/proc/", pid, "/task"))) {
    std::ifstream file(task.path() / "schedstat");
    uint64_t nanoseconds = 0;
    file >> nanoseconds;
    total += static_cast<double>(nanoseconds) / 1e9;
  }
  return total;
}

// Two workers of one model, one of them sealed, take turns.
TEST_F(CostsTest, ASealedWorkerCostsNoMoreThanAnother) {
  for (const auto& [model, elements] :
       {std::pair{"bench_identity/1", 16}, std::pair{"bench_mlp/1", 64}}) {
    const std::unique_ptr<TestWorker> workers[] = {Load(model), Load(model)};
    ASSERT_TRUE(workers[0] != nullptr && workers[1] != nullptr);
    ASSERT_TRUE(workers[1]->Seal().ok());
    const tensor::Tensor x = MakeTensor(tensor::DType::kFloat, {1, elements},
                                        std::vector<float>(static_cast<size_t>(elements), 1));
    constexpr int kRuns = 300;
    std::vector<double> costs[2];  // Of a run, in microseconds of CPU.
    for (int round = 0; round < 30; ++round) {
      for (int i = 0; i < 2; ++i) {
        TestWorker& worker = *workers[(round + i) % 2];
        const double before = CpuSeconds(worker.pid());
        for (int run = 0; run < kRuns; ++run) {
          const auto answer = worker.Run("serving_default", {&x});
          ASSERT_TRUE(answer.ok() && answer->completion.status.ok());
        }
        costs[(round + i) % 2].push_back((CpuSeconds(worker.pid()) - before) / kRuns * 1e6);
      }
    }
    for (std::vector<double>& rounds : costs) std::sort(rounds.begin(), rounds.end());
    GTEST_LOG_(INFO) << model << ": CPU of a run in the worker, stage 1 " << costs[0][15]
                     << " us, stage 2 " << costs[1][15] << " us (medians); least " << costs[0][0]
                     << " and " << costs[1][0] << " us";
    // The least of the rounds: what runs beside the test disturbs the others.
    EXPECT_LT(costs[1][0], 1.5 * costs[0][0] + 5);
  }
}

}  // namespace
}  // namespace tensord::testing
