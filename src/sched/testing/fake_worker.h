// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "fleet/worker.h"
#include "loop/timers.h"
#include "sched/rows.h"

namespace tensord::sched {

// What a worker was asked to run.
struct FakeRun {
  int signature = 0;
  std::vector<int> more_signatures = {};
  int64_t rows = 0;   // Joined; 0 for scalars.
  size_t pieces = 0;  // Calls, and padding rows.
  absl::Time started;
  absl::Time deadline;
  absl::Time kill_at;  // As last told.
  uint64_t name = 0;
};

// A worker process of the imagination: runs take as long as `time` says, in fake time, and give the
// model's outputs. By default every output is the input of the same place.
class FakeWorker final : public fleet::Worker {
 public:
  using Time = std::function<absl::Duration(const FakeRun&)>;
  // Outputs for joined inputs, or the runtime's error.
  using Model = std::function<absl::StatusOr<OwnedViews>(const FakeRun&, const OwnedViews&)>;

  explicit FakeWorker(loop::Timers& timers, int executors = 1)
      : timers_(timers), executors_(executors) {}
  ~FakeWorker() override {
    for (const auto& [timer, out] : out_) timers_.Cancel(timer);
  }

  Time time = [](const FakeRun&) { return absl::Milliseconds(1); };
  Model model = [](const FakeRun&, const OwnedViews& inputs) { return inputs; };
  // True: this run kills the worker when its time is over.
  std::function<bool(const FakeRun&, const OwnedViews&)> kills = [](const auto&, const auto&) {
    return false;
  };
  std::function<void(const FakeRun&, const OwnedViews&)> on_start;
  std::function<void()> on_free;   // After an outcome.
  std::function<void()> on_death;  // Before the outcomes of what was out.

  int Free() const override {
    return alive_ ? executors_ + staged_max - static_cast<int>(out_.size()) : 0;
  }
  int Executors() const override { return executors_; }

  void Submit(fleet::RunSpec spec, fleet::RunDone done) override {
    TENSORD_CHECK(Free() > 0);
    FakeRun run{.signature = spec.signature,
                .more_signatures = spec.more_signatures,
                .pieces = spec.inputs.empty() ? 0 : spec.inputs[0].size(),
                .started = timers_.Now(),
                .deadline = spec.deadline,
                .kill_at = spec.kill_at,
                .name = spec.name};
    OwnedViews inputs = Join(spec);
    if (!inputs.tensors.empty() && inputs.tensors[0].shape.rank() > 0) {
      run.rows = inputs.tensors[0].shape.dim(0);
    }
    runs.push_back(run);
    if (on_start) on_start(run, inputs);
    auto id = std::make_shared<loop::TimerId>();
    *id = timers_.At(timers_.Now() + time(run), [this, id] { Finish(*id); });
    out_.emplace(*id, Out{run, std::move(inputs), std::move(spec), std::move(done)});
  }

  void Abandon(uint64_t name, absl::Time kill_at) override {
    for (FakeRun& run : runs) {
      if (run.name == name) run.kill_at = std::min(run.kill_at, kill_at);
    }
  }

  // As when its process dies: everything that is out comes back as lost.
  // `crashed`: one of its runs may be to blame; else `unexplained`: perhaps.
  void Die(const std::string& reason = "killed by signal 9", bool crashed = false,
           bool unexplained = false) {
    alive_ = false;
    if (on_death) on_death();
    auto out = std::move(out_);
    out_.clear();
    for (const auto& [timer, run] : out) timers_.Cancel(timer);
    for (auto& [timer, run] : out) {
      fleet::RunOutcome outcome;
      outcome.status = absl::UnavailableError(reason);
      outcome.worker_lost = true;
      outcome.crashed = crashed;
      outcome.unexplained = unexplained;
      run.done(std::move(outcome));
    }
  }

  bool alive() const { return alive_; }
  size_t out() const { return out_.size(); }

  // Runs taken beyond the executors. They are imagined to run at once, too: only who gets what
  // matters here.
  int staged_max = 0;
  // Of all runs that were ever started.
  std::vector<int64_t> RunRows() const {
    std::vector<int64_t> rows;
    for (const FakeRun& run : runs) rows.push_back(run.rows);
    return rows;
  }

  std::vector<FakeRun> runs;  // All that were ever started.

 private:
  struct Out {
    FakeRun run;
    OwnedViews inputs;
    fleet::RunSpec spec;  // Kept: the bytes must stay until the run ends.
    fleet::RunDone done;
  };

  // A copy, made now, as the real one copies into shared memory.
  static OwnedViews Join(const fleet::RunSpec& spec) {
    std::vector<OwnedViews> pieces(spec.inputs.empty() ? 0 : spec.inputs[0].size());
    for (const auto& input : spec.inputs) {
      TENSORD_CHECK(input.size() == pieces.size());
      for (size_t p = 0; p < pieces.size(); ++p) pieces[p].tensors.push_back(input[p]);
    }
    if (pieces.empty()) return {};
    if (pieces.size() == 1) return Copy(pieces[0]);
    absl::StatusOr<OwnedViews> joined = JoinRows(pieces);
    TENSORD_CHECK(joined.ok());
    return *std::move(joined);
  }

  static OwnedViews Copy(const OwnedViews& from) {
    auto buffers = std::make_shared<std::vector<tensor::Buffer>>();
    OwnedViews copy;
    for (const tensor::TensorView& tensor : from.tensors) {
      tensor::Buffer& buffer = buffers->emplace_back(tensor.bytes.size());
      if (!tensor.bytes.empty()) {
        std::memcpy(buffer.bytes().data(), tensor.bytes.data(), tensor.bytes.size());
      }
      copy.tensors.push_back(
          {.dtype = tensor.dtype, .shape = tensor.shape, .bytes = buffer.bytes()});
    }
    copy.keep = std::move(buffers);
    return copy;
  }

  void Finish(loop::TimerId id) {
    auto node = out_.extract(id);
    Out& out = node.mapped();
    if (kills(out.run, out.inputs)) {
      out_.insert(std::move(node));
      Die("killed by signal 11", /*crashed=*/true);
      return;
    }
    // The bytes that were handed over have to be there until now.
    TENSORD_CHECK(SameBytes(Join(out.spec), out.inputs));
    fleet::RunOutcome outcome;
    absl::StatusOr<OwnedViews> outputs = model(out.run, out.inputs);
    outcome.status = outputs.status();
    outcome.run_time = timers_.Now() - out.run.started;
    if (outputs.ok()) {
      outcome.outputs = outputs->tensors;
      // The real one hands out the buffer that the views point into.
      auto owner = std::make_shared<std::pair<OwnedViews, tensor::Buffer>>(*std::move(outputs),
                                                                           tensor::Buffer());
      outcome.bytes = std::shared_ptr<const tensor::Buffer>(owner, &owner->second);
    }
    out.done(std::move(outcome));
    if (on_free) on_free();
  }

  static bool SameBytes(const OwnedViews& a, const OwnedViews& b) {
    return std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                      [](const tensor::TensorView& x, const tensor::TensorView& y) {
                        return std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(),
                                          y.bytes.end());
                      });
  }

  loop::Timers& timers_;
  const int executors_;
  bool alive_ = true;
  std::map<loop::TimerId, Out> out_;
};

}  // namespace tensord::sched
