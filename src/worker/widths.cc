// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/widths.h"

#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/sched_limits.h"
#include "base/text.h"
#include "engine/model_info.h"
#include "worker/warm_up.h"

namespace tensord::worker {
namespace {

// Below this share of a run's CPU time in other threads, two such runs hardly meet.
constexpr double kParallelShareMin = 0.15;
// Of each signature; the share is told from the sum.
constexpr int kMeasuredRuns = 3;

absl::Duration CpuTime(int whose) {
  rusage used = {};
  getrusage(whose, &used);
  return absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
}

bool UsesGpu(const engine::Model& model) {
  engine::ModelInfo info;
  model.Describe(&info);
  return engine::UsesGpu(info);
}

// A signature, and zeros that it takes.
struct Candidate {
  int signature = 0;
  ZeroInputs zeros;
};

std::vector<Candidate> Candidates(const engine::Model& model) {
  std::vector<Candidate> found;
  for (size_t i = 0; i < model.signatures().size(); ++i) {
    const tensor::Signature& signature = model.signatures()[i];
    if (!CanBeCalled(signature)) continue;
    const auto shapes = WarmUpShapes(signature, 1);
    if (!shapes.ok()) continue;
    absl::StatusOr<ZeroInputs> zeros = MakeZeros(signature, *shapes);
    if (zeros.ok()) found.push_back({static_cast<int>(i), *std::move(zeros)});
  }
  return found;
}

// The part of its runs' CPU time that other threads spent; 0 when zeros are no input for it.
double ParallelShare(engine::Model& model, const Candidate& run,
                     const std::function<CpuTimes()>& cpu_times, bool* kept) {
  // The first one may still optimise the graph.
  if (!Finish(model.Run(run.signature, run.zeros.views), kept).ok()) return 0;
  const CpuTimes before = cpu_times();
  for (int i = 0; i < kMeasuredRuns; ++i) {
    if (!Finish(model.Run(run.signature, run.zeros.views), kept).ok()) return 0;
  }
  const CpuTimes after = cpu_times();
  const absl::Duration process = after.process - before.process;
  if (process <= absl::ZeroDuration()) return 0;
  return 1 - absl::FDivDuration(after.thread - before.thread, process);
}

}  // namespace

CpuTimes ReadCpuTimes() {
  return {.process = CpuTime(RUSAGE_SELF), .thread = CpuTime(RUSAGE_THREAD)};
}

WidthReport ChooseWidths(engine::Model& model, const WidthOptions& options) {
  WidthReport report;
  if (options.narrow_session_config.empty() || UsesGpu(model)) return report;
  std::vector<Candidate> wide;
  const absl::Duration begun = options.cpu_times().process;
  for (Candidate& candidate : Candidates(model)) {
    // A load must not wait for much of this; the signatures that are left stay wide.
    if (options.cpu_times().process - begun > limits::kWarmUpTimingMax) break;
    bool kept = false;
    const double share = ParallelShare(model, candidate, options.cpu_times, &kept);
    if (kept) {
      std::ranges::move(candidate.zeros.tensors, std::back_inserter(report.kept));
    } else if (share >= kParallelShareMin) {
      wide.push_back(std::move(candidate));
    }
  }
  if (wide.empty()) return report;
  if (options.private_bytes > options.private_bytes_max) {
    report.warnings.push_back(base::Cat(
        "runs of this model share their threads even when many run at once: a second session for "
        "such runs would take about ",
        options.private_bytes, " bytes more, and ", options.private_bytes_max,
        " are allowed for that (a part of --memory_limit_bytes)"));
    return report;
  }
  absl::Status opened = model.OpenNarrow(options.narrow_session_config);
  report.two = opened.ok();
  for (Candidate& candidate : wide) {
    if (!opened.ok()) break;
    bool kept = false;
    opened = Finish(model.WarmNarrow(candidate.signature, candidate.zeros.views), &kept);
    // Runs alone may be made elsewhere than before.
    if (opened.ok()) {
      opened = Finish(model.Run(candidate.signature, candidate.zeros.views), &kept);
    }
    if (kept) std::ranges::move(candidate.zeros.tensors, std::back_inserter(report.kept));
  }
  if (!opened.ok()) {
    report.warnings.push_back(
        base::Cat("the second session, for runs beside others: ", base::Message(opened)));
  }
  return report;
}

}  // namespace tensord::worker
