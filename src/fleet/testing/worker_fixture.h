// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/limits.h"
#include "fleet/testing/fake_process.h"
#include "fleet/worker_handle.h"
#include "gtest/gtest.h"
#include "loop/event_loop.h"

namespace tensord::fleet {

// Time that moves when a test moves it.
class HandClock final : public base::Clock {
 public:
  absl::Time Now() const override { return now_; }
  void Advance(absl::Duration by) { now_ += by; }

 private:
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

// A submitted run and what became of it.
struct Asked {
  std::vector<float> values;
  std::string strings_bytes;  // A packed string tensor.
  int outcomes = 0;
  RunOutcome outcome;
};

// A WorkerHandle, the process it talks to, and what its observer was told.
class WorkerFixture : public ::testing::Test, public WorkerObserver {
 protected:
  // Makes handle and process; the model is not loaded.
  void Start(uint32_t executors = 1, uint64_t segment_bytes = 64 * 1024);
  // And loads it.
  void StartLoaded(uint32_t executors = 1, uint64_t segment_bytes = 64 * 1024);
  void TearDown() override { handle_.reset(); }

  // Lets the loop do all there is to do now.
  void Turn();
  // Time passes, with a turn every 50 ms: what a loop that is not held up would see.
  void Advance(absl::Duration by);

  // Submits floats to "twice". Lifetime: until the fixture's end.
  // Asks for values that fit no standard segment, and answers.
  void AnswerLarge(const std::vector<float>& values);
  Asked* AskTwice(std::vector<float> values, absl::Time deadline = absl::InfiniteFuture());
  // Likewise, of floats that lie somewhere already. Lifetime: until the answer.
  Asked* AskTwiceAt(std::span<const float> values, absl::Time deadline = absl::InfiniteFuture());
  // Submits the strings of each piece to "strings".
  Asked* AskStrings(const std::vector<std::vector<std::string>>& pieces);
  static std::vector<float> FloatsOf(const Asked& asked);
  static std::vector<std::string> StringsOf(const Asked& asked);
  // The handle's end, kills and outcomes are as after a worker that had to go.
  void ExpectLost(const Asked& asked, std::string_view words);

  // WorkerObserver.
  void OnLoaded(WorkerHandle& worker, const engine::ModelInfo& info) override;
  void OnFree() override { ++frees_; }
  void OnEnded(WorkerHandle* worker, End end, const absl::Status& reason) override;

  void Submit(Asked* asked, std::span<const float> values, absl::Time deadline);

  absl::Duration load_wait_max_ = limits::kLoadWaitMax;
  HandClock clock_;
  std::unique_ptr<loop::EventLoop> loop_;
  std::unique_ptr<FakeProcess> process_;
  std::unique_ptr<WorkerHandle> handle_;
  std::vector<std::unique_ptr<Asked>> asked_;
  std::vector<std::unique_ptr<tensor::Buffer>> pieces_;
  int kills_ = 0;
  int loads_ = 0;
  int frees_ = 0;
  int ends_ = 0;
  engine::ModelInfo info_;
  std::optional<End> end_;
  absl::Status reason_;
};

}  // namespace tensord::fleet
