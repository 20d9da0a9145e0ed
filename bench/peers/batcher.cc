// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "batcher.h"

#include <chrono>
#include <cstring>
#include <utility>

namespace tensord::peers {
namespace {

using tensor::Tensor;

int64_t NowMicroseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// Rows [from, from + rows) of a tensor, copied to out.
void CopyRows(const Tensor& in, int64_t from, int64_t rows, std::byte* out) {
  const size_t row_bytes = in.buffer.size() / static_cast<size_t>(in.shape.dim(0));
  std::memcpy(out, in.buffer.bytes().data() + static_cast<size_t>(from) * row_bytes,
              static_cast<size_t>(rows) * row_bytes);
}

}  // namespace

Batcher::Batcher(std::unique_ptr<Runner> runner, BatcherOptions options)
    : runner_(std::move(runner)), options_(options) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
}

Batcher::~Batcher() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<std::vector<Tensor>> Batcher::Run(std::vector<Tensor> inputs) {
  Task task;
  task.rows = inputs.front().shape.dim(0);
  task.inputs = std::move(inputs);
  task.arrived_microseconds = NowMicroseconds();
  std::unique_lock<std::mutex> lock(mu_);
  queue_.push_back(&task);
  changed_.notify_one();
  task.wake.wait(lock, [&task] { return task.done; });
  return std::move(task.result);
}

// Waits for a batch that is full or old enough; empty when stopping.
std::vector<Batcher::Task*> Batcher::TakeBatch(std::unique_lock<std::mutex>& lock) {
  while (!stopping_) {
    if (queue_.empty()) {
      changed_.wait(lock);
      continue;
    }
    int64_t rows = 0;
    size_t taken = 0;
    while (taken < queue_.size() && rows + queue_[taken]->rows <= options_.rows_max) {
      rows += queue_[taken++]->rows;
    }
    const int64_t due = queue_.front()->arrived_microseconds + options_.timeout_microseconds;
    const int64_t now = NowMicroseconds();
    if (rows == options_.rows_max || taken < queue_.size() || due <= now) {
      std::vector<Task*> batch(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(taken));
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(taken));
      if (!queue_.empty()) changed_.notify_one();
      return batch;
    }
    changed_.wait_for(lock, std::chrono::microseconds(due - now));
  }
  return {};
}

void Batcher::Work() {
  std::unique_lock<std::mutex> lock(mu_);
  while (true) {
    const std::vector<Task*> batch = TakeBatch(lock);
    if (batch.empty()) return;
    lock.unlock();
    RunBatch(batch);
    lock.lock();
    for (Task* task : batch) {
      task->done = true;
      task->wake.notify_one();
    }
  }
}

void Batcher::RunBatch(const std::vector<Task*>& batch) {
  int64_t rows = 0;
  for (const Task* task : batch) rows += task->rows;
  std::vector<Tensor> together;
  for (size_t i = 0; i < batch.front()->inputs.size(); ++i) {
    const Tensor& first = batch.front()->inputs[i];
    const size_t row_bytes = first.buffer.size() / static_cast<size_t>(first.shape.dim(0));
    Tensor joined{first.dtype, first.shape.WithRows(rows),
                  tensor::Buffer(row_bytes * static_cast<size_t>(rows))};
    std::byte* out = joined.buffer.bytes().data();
    for (const Task* task : batch) {
      CopyRows(task->inputs[i], 0, task->rows, out);
      out += task->inputs[i].buffer.size();
    }
    together.push_back(std::move(joined));
  }
  const absl::StatusOr<std::vector<Tensor>> outputs = runner_->Run(std::move(together));
  int64_t from = 0;
  for (Task* task : batch) {
    if (!outputs.ok()) {
      task->result = outputs.status();
      continue;
    }
    std::vector<Tensor> own;
    for (const Tensor& output : *outputs) {
      const size_t row_bytes = output.buffer.size() / static_cast<size_t>(rows);
      Tensor part{output.dtype, output.shape.WithRows(task->rows),
                  tensor::Buffer(row_bytes * static_cast<size_t>(task->rows))};
      CopyRows(output, from, task->rows, part.buffer.bytes().data());
      own.push_back(std::move(part));
    }
    task->result = std::move(own);
    from += task->rows;
  }
}

}  // namespace tensord::peers
