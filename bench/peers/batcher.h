// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "predictor.h"

namespace tensord::peers {

struct BatcherOptions {
  int64_t rows_max = 32;
  int64_t timeout_microseconds = 1000;
  int threads = 2;
};

// The classic batcher: a batch runs when it is full or when so much time has passed since its first
// request came, whether or not somebody could have run it earlier. Callers wait in their threads.
class Batcher : public Runner {
 public:
  Batcher(std::unique_ptr<Runner> runner, BatcherOptions options);
  ~Batcher() override;

  const tensor::Signature& signature() const override { return runner_->signature(); }
  absl::StatusOr<std::vector<tensor::Tensor>> Run(std::vector<tensor::Tensor> inputs) override;

 private:
  struct Task {
    std::vector<tensor::Tensor> inputs;
    int64_t rows = 0;
    int64_t arrived_microseconds = 0;
    absl::StatusOr<std::vector<tensor::Tensor>> result;
    bool done = false;
    std::condition_variable wake;
  };

  void Work();
  std::vector<Task*> TakeBatch(std::unique_lock<std::mutex>& lock);
  void RunBatch(const std::vector<Task*>& batch);

  const std::unique_ptr<Runner> runner_;
  const BatcherOptions options_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Task*> queue_;  // Guarded by mu_; so is what follows, and Task::done.
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tensord::peers
