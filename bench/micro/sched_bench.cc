// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// What the scheduler itself costs: from Submit to done, with a worker that costs nothing. Time does
// not pass, so no timer fires, but each one armed is paid for.

#include <benchmark/benchmark.h>

#include <utility>
#include <vector>

#include "loop/testing/fake_timers.h"
#include "sched/testing/sched_fixtures.h"
#include "sched/version_queue.h"

namespace tensord::sched {
namespace {

// Takes runs and ends them when told; the outputs are the first call's inputs, as many rows as
// asked.
class NullWorker final : public fleet::Worker {
 public:
  explicit NullWorker(int executors, int64_t rows_max)
      : executors_(executors), rows_(Floats({rows_max, 4}, 0)) {}
  int Free() const override { return executors_ - static_cast<int>(out_.size()); }
  int Executors() const override { return executors_; }
  void Submit(fleet::RunSpec spec, fleet::RunDone done) override {
    int64_t rows = 0;
    for (const tensor::TensorView& piece : spec.inputs[0]) rows += piece.shape.dim(0);
    out_.emplace_back(rows, std::move(done));
  }
  void Abandon(uint64_t /*name*/, absl::Time /*kill_at*/) override {}
  bool FinishOne() {
    if (out_.empty()) return false;
    auto [rows, done] = std::move(out_.back());
    out_.pop_back();
    fleet::RunOutcome outcome;
    tensor::TensorView& y = outcome.outputs.emplace_back(rows_.tensors[0]);
    y.shape = y.shape.WithRows(rows);
    y.bytes = y.bytes.first(static_cast<size_t>(rows) * 4 * sizeof(float));
    outcome.bytes = std::shared_ptr<const tensor::Buffer>(rows_.keep, nullptr);
    outcome.run_time = absl::Microseconds(3);
    done(std::move(outcome));
    return true;
  }

 private:
  const int executors_;
  const OwnedViews rows_;
  std::vector<std::pair<int64_t, fleet::RunDone>> out_;
};

// range(0) calls in flight, closed loop, batches of at most range(1) rows, one executor.
void SubmitToDone(benchmark::State& state) {
  const int64_t in_flight = state.range(0);
  loop::FakeTimers timers;
  NullWorker worker(1, 64);
  QueueOptions options;
  options.signatures = {OpenSignature()};
  options.rows_max = state.range(1);
  VersionQueue queue(timers, std::move(options));
  queue.AddWorker(&worker);
  const OwnedViews input = Floats({1, 4}, 0);
  int64_t waiting = 0;
  int64_t answered = 0;
  for (auto _ : state) {
    while (waiting < in_flight) {
      ++waiting;
      queue.Submit({.inputs = input.tensors,
                    .keep = input.keep,
                    .rows = 1,
                    .arrived = timers.Now(),
                    .deadline = timers.Now() + absl::Hours(1),
                    .done = [&](CallResult result) {
                      benchmark::DoNotOptimize(result.outputs.data());
                      --waiting;
                      ++answered;
                    }});
    }
    worker.FinishOne();
  }
  while (worker.FinishOne()) {
  }
  state.SetItemsProcessed(answered);
  state.counters["per_call"] = benchmark::Counter(
      static_cast<double>(answered), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(SubmitToDone)
    ->Args({1, 1})
    ->Args({64, 1})
    ->Args({64, 8})
    ->Args({64, 64})
    ->Args({4096, 8});

}  // namespace
}  // namespace tensord::sched
