// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/advise/decide.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "base/text.h"
#include "doctor/advise/stage.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

// From here on a cause is worth naming.
constexpr double kWaitShare = 0.2;   // Of the step time.
constexpr double kGpuBusy = 0.8;     // Below it a GPU is not the bottleneck.
constexpr double kGpuUpgrade = 0.7;  // Below it a faster GPU would not help.
constexpr double kMemoryFull = 0.9;
constexpr double kThreadsACpu = 2;
constexpr double kUneven = 0.5;      // One share of another.
constexpr double kBytesMax = 1e18;   // What a file may claim.
constexpr double kQueueShare = 0.4;  // Of a request's time.
constexpr double kSmallBatch = 2;    // Rows.
constexpr double kGpuInUse = 0.05;   // Below it nothing runs there that could be larger.

// The mean of one member, over those who know theirs; -1, as theirs, when nobody does.
template <typename Item>
double MeanOf(const std::vector<Item>& items, double Item::*member) {
  double sum = 0;
  int count = 0;
  for (const Item& item : items) {
    if (item.*member < 0) continue;
    sum += item.*member;
    ++count;
  }
  return count > 0 ? sum / count : -1;
}
double MeanWait(const Observation& seen) { return MeanOf(seen.ranks, &Rank::input_wait); }
double MeanGpu(const Observation& seen) { return MeanOf(seen.gpus, &GpuUse::utilisation); }

void DecideInput(const Observation& seen, Findings* out) {
  const double wait = MeanWait(seen);
  const double gpu = MeanGpu(seen);
  const std::string of_gpus = gpu < 0 ? "" : base::Cat("; GPUs busy ", Percent(gpu));
  if (wait >= kWaitShare) {
    const Stage stage = SlowStage(seen);
    out->push_back(
        {.id = "input.pipeline",
         .level = Level::kError,
         .seen = base::Cat(Percent(wait), " of the step time is waiting for input", of_gpus,
                           "; CPUs busy ", Percent(seen.cpu), "; stage: ", stage.name),
         .why = base::Cat("at most ", Fixed(1 / std::max(0.02, 1 - wait), 1),
                          " times as fast without the wait; a faster GPU changes "
                          "nothing"),
         .action = stage.fix});
  } else if (wait < 0 && gpu >= 0 && gpu < kGpuBusy && seen.cpu >= kCpuBusy) {
    out->push_back(
        {.id = "input.pipeline",
         .level = Level::kWarning,
         .seen =
             base::Cat("GPUs busy ", Percent(gpu), " while the CPUs are busy ", Percent(seen.cpu)),
         .why = "that is how an input pipeline looks that cannot keep up; how long steps "
                "wait was not measured",
         .action = "measure it: run under `tensord train`, or give --training_status"});
  }
}

void DecideGpus(const Observation& seen, Findings* out) {
  for (size_t i = 0; i < seen.gpus.size(); ++i) {
    const GpuUse& gpu = seen.gpus[i];
    const std::string name = base::Cat("GPU ", i, " (", gpu.name, ")");
    if (gpu.throttled >= kWaitShare) {
      out->push_back({.id = base::Cat("gpu.", i, ".throttled"),
                      .level = Level::kWarning,
                      .seen = base::Cat(name, " was slowed down ", Percent(gpu.throttled),
                                        " of the time: ", gpu.throttle_words),
                      .why = "the same work takes longer",
                      .action = "cooling and power first, before any other GPU"});
    }
    if (gpu.memory >= kMemoryFull && gpu.utilisation >= 0 && gpu.utilisation < kGpuUpgrade) {
      out->push_back({.id = base::Cat("gpu.", i, ".memory"),
                      .level = Level::kWarning,
                      .seen = base::Cat(name, ": memory ", Percent(gpu.memory), " full, busy ",
                                        Percent(gpu.utilisation)),
                      .why = "larger batches would keep it busier, and do not fit (or the process "
                             "took all memory in advance: TF_FORCE_GPU_ALLOW_GROWTH=true shows)",
                      .action = "mixed precision first, then gradient accumulation; when buying: a "
                                "GPU with more memory, not a faster one"});
    }
    if (gpu.utilisation >= kGpuBusy && gpu.throttled < kWaitShare) {
      out->push_back(
          {.id = base::Cat("gpu.", i, ".compute"),
           .level = Level::kInfo,
           .seen = base::Cat(name, " is busy ", Percent(gpu.utilisation)),
           .why = "it is the bottleneck, as it should be",
           .action = "mixed precision and XLA first; then a faster GPU or more of them"});
    }
  }
}

// Ranks that neither wait for input nor for each other, and GPUs that are not busy all the same,
// with memory to spare: what a step gives them is too little.
void DecideBatch(const Observation& seen, Findings* out) {
  const double wait = MeanWait(seen);
  if (wait < 0 || wait >= kWaitShare || seen.cpu >= kCpuBusy) return;
  double rate = -1;
  for (const Rank& rank : seen.ranks) {
    if (rank.all_reduce >= kWaitShare) return;
    rate = std::max(rate, rank.steps_per_second);
  }
  std::vector<GpuUse> used;
  std::ranges::copy_if(seen.gpus, std::back_inserter(used),
                       [](const GpuUse& gpu) { return gpu.utilisation >= kGpuInUse; });
  if (used.empty()) return;
  double memory = 0;
  for (const GpuUse& gpu : used) {
    if (gpu.throttled >= kWaitShare) return;
    memory = std::max(memory, gpu.memory);
  }
  const double busy = MeanOf(used, &GpuUse::utilisation);
  if (busy >= kGpuUpgrade || memory >= kMemoryFull) return;
  out->push_back(
      {.id = "batch.small",
       .level = Level::kWarning,
       .seen = base::Cat("GPUs in use are busy ", Percent(busy), " with at most ", Percent(memory),
                         " of their memory full, while ", Percent(wait),
                         " of the step time is waiting for input",
                         rate > 0 ? base::Cat("; ", Fixed(rate, 1), " steps a second") : ""),
       .why = "a step is too small for the GPU: it waits for the next one to be started",
       .action = "a larger batch: double it while memory allows and examples a second grow (and "
                 "adapt the learning rate); then several steps a call, "
                 "compile(steps_per_execution=16) in Keras or a loop inside the tf.function; then "
                 "jit_compile=True, which makes fewer and larger kernels. No faster GPU"});
}

// "worker/1 12 MiB a step"; "" when nobody told.
std::string ExchangedBytes(const Rank& rank) {
  if (rank.all_reduce_bytes < 0) return "";
  std::string text = base::Cat(
      "; ", rank.name, " gives ",
      Bytes(static_cast<uint64_t>(std::min(rank.all_reduce_bytes, kBytesMax))), " a step");
  if (rank.steps_per_second <= 0) return text;
  const double rate = std::min(rank.all_reduce_bytes * rank.steps_per_second, kBytesMax);
  return base::Cat(text, ", ", Bytes(static_cast<uint64_t>(rate)), "/s");
}

// A rank exchanges, or waits until the others do: who waits least is who keeps the others waiting.
void DecideCommunication(const Observation& seen, Findings* out) {
  std::vector<Rank> told;
  std::ranges::copy_if(seen.ranks, std::back_inserter(told),
                       [](const Rank& rank) { return rank.all_reduce >= 0; });
  if (told.empty()) return;
  const auto [least, most] = std::ranges::minmax_element(told, {}, &Rank::all_reduce);
  if (most->all_reduce < kWaitShare) return;
  if (least->all_reduce < most->all_reduce * kUneven) {
    out->push_back({.id = "ranks.uneven",
                    .level = Level::kWarning,
                    .seen = base::Cat(most->name, " is ", Percent(most->all_reduce),
                                      " of the step time in the exchange of gradients, ",
                                      least->name, " ", Percent(least->all_reduce)),
                    .why = base::Cat("all wait for ", least->name, ", whose steps take longest"),
                    .action = base::Cat("find out why ", least->name,
                                        " is slow: its input, its CPUs, its share of the data; "
                                        "neither 16 bits nor a faster network help")});
    return;
  }
  out->push_back(
      {.id = "communication",
       .level = Level::kWarning,
       .seen = base::Cat("up to ", Percent(most->all_reduce),
                         " of the step time is exchanging gradients", ExchangedBytes(*most),
                         "; network ", Bytes(static_cast<uint64_t>(seen.network_bytes)), "/s"),
       .why = "more nodes make it worse",
       .action = "exchange in 16 bits (half the bytes), accumulate gradients over k "
                 "micro-batches (1/k of the exchanges), then a faster network"});
}

void DecideHost(const Observation& seen, Findings* out) {
  if (seen.memory >= kMemoryFull || seen.swap_bytes > 0) {
    out->push_back(
        {.id = "memory.host",
         .level = Level::kWarning,
         .seen = base::Cat("memory ", Percent(seen.memory), " full, ",
                           Bytes(static_cast<uint64_t>(seen.swap_bytes)), " in swap"),
         .why = "the kernel drops cached files first, then swaps, then ends processes",
         .action = "smaller shuffle buffers and caches, fewer models; then more memory"});
  }
  if (seen.running >= kThreadsACpu * seen.cpus && seen.pressure_cpu >= kPressureHigh) {
    out->push_back(
        {.id = "threads.oversubscribed",
         .level = Level::kWarning,
         .seen = base::Cat(Fixed(seen.running, 1), " threads want to run on ", seen.cpus,
                           " CPUs; somebody waits ", Fixed(seen.pressure_cpu, 0), " % of the time"),
         .why = "threads that wait for each other's CPU make tails long and steps uneven",
         .action = "one pool for all: TF_NUM_INTRAOP_THREADS at the number of CPUs that "
                   "the process may use (`tensord doctor` says it), fewer processes"});
  } else if (seen.cpu >= kCpuBusy && seen.gpus.empty() && MeanWait(seen) < kWaitShare) {
    out->push_back({.id = "cpu.compute",
                    .level = Level::kInfo,
                    .seen = base::Cat("CPUs busy ", Percent(seen.cpu)),
                    .why = "the processors are the bottleneck",
                    .action =
                        "oneDNN and, where `tensord doctor` says it pays, bfloat16; then more "
                        "cores, or a GPU if the model is large"});
  }
}

void DecideModel(const Observation& seen, const ModelRates& m, Findings* out) {
  const std::string who = base::Cat(m.name, " version ", m.version);
  const std::string id = base::Cat("serving.", m.name);
  if (m.unserved > 0) {
    out->push_back(
        {.id = id,
         .level = Level::kWarning,
         .seen = base::Cat(who, ": ", Fixed(m.unserved, 1),
                           " calls a second are not "
                           "served, of ",
                           Fixed(m.requests, 1)),
         .why = "more comes than can be computed in time",
         .action = seen.cpu >= kCpuBusy
                       ? "more CPUs or another server; nothing here is idle"
                       : "a larger queue hides it; more replicas of the model, or larger "
                         "batches, use the idle CPUs"});
  }
  if (m.requests <= 0 || m.queue_share < kQueueShare) return;
  if (m.batch_rows > 0 && m.batch_rows < kSmallBatch && m.queue > 1) {
    out->push_back({.id = id,
                    .level = Level::kWarning,
                    .seen = base::Cat(who, ": ", Fixed(m.batch_rows, 1), " rows a batch while ",
                                      Fixed(m.queue, 0), " calls wait; ", Percent(m.queue_share),
                                      " of their time is the queue"),
                    .why = "the model runs call by call",
                    .action = "`tensord doctor --model DIR` says whether it can be batched; then "
                              "--enable_batching with a max_batch_size, or export it with an open "
                              "leading dim. Record before and after, and compare with --before"});
  } else if (seen.cpu < kGpuUpgrade) {
    out->push_back({.id = id,
                    .level = Level::kWarning,
                    .seen = base::Cat(who, ": ", Percent(m.queue_share),
                                      " of a call's time is the "
                                      "queue, with the CPUs at ",
                                      Percent(seen.cpu)),
                    .why = "runs wait for each other, not for the processor",
                    .action =
                        "more runs at once: num_batch_threads, or more replicas of the model. "
                        "Record before and after, and compare with --before"});
  } else {
    out->push_back({.id = id,
                    .level = Level::kWarning,
                    .seen = base::Cat(who, ": ", Percent(m.queue_share),
                                      " of a call's time is the "
                                      "queue, with the CPUs at ",
                                      Percent(seen.cpu)),
                    .why = "the processors are the bottleneck",
                    .action = "larger batches if the model gains from them, then more CPUs or "
                              "another server"});
  }
}

}  // namespace

Findings Decide(const Observation& seen) {
  Findings all;
  DecideInput(seen, &all);
  DecideGpus(seen, &all);
  DecideBatch(seen, &all);
  DecideCommunication(seen, &all);
  DecideHost(seen, &all);
  for (const ModelRates& model : seen.models) DecideModel(seen, model, &all);
  std::ranges::stable_sort(all, std::ranges::greater(), &Finding::level);
  if (all.empty()) {
    all.push_back({.id = "none",
                   .seen = base::Cat("nothing holds this machine back: CPUs busy ",
                                     Percent(seen.cpu), ", memory ", Percent(seen.memory),
                                     " full, over ", Fixed(seen.seconds, 0), " s"),
                   .action = "no upgrade: it would be idle as well"});
  }
  return all;
}

Findings DecideGrowth(const std::vector<TimedRun>& runs) {
  if (runs.size() < 3) return {};
  // The slope in logarithms: 1 is proportional, 0 does not depend on the data.
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const TimedRun& run : runs) {
    const double a = std::log(run.examples);
    const double b = std::log(run.seconds);
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  const auto n = static_cast<double>(runs.size());
  const double spread = n * xx - x * x;
  if (!(spread > 1e-9)) return {};
  const double slope = (n * xy - x * y) / spread;
  const std::string text = base::Cat("time grows as data to the power of ", Fixed(slope, 2),
                                     ", by ", runs.size(), " runs");
  if (slope < 0.8) {
    return {
        {.id = "growth",
         .level = Level::kInfo,
         .seen = text,
         .why = "a good part of the time does not depend on the data: starting, tracing, saving",
         .action = "shorten that first; more GPUs would not"}};
  }
  return {{.id = "growth",
           .level = slope > 1.2 ? Level::kWarning : Level::kInfo,
           .seen = text,
           .why = slope > 1.2 ? "more than proportional: something in the program gets slower"
                              : "proportional: the work can be divided",
           .action = slope > 1.2 ? "look for growing buffers, shuffles and logs before buying"
                                 : "more GPUs, then more nodes, shorten it, while the input keeps "
                                   "up"}};
}

Findings MeasuredGain(const Observation& before, const Observation& after) {
  Findings all;
  for (const ModelRates& now : after.models) {
    const auto then = std::ranges::find(before.models, now.name, &ModelRates::name);
    if (then == before.models.end() || then->requests <= 0 || now.requests <= 0) continue;
    const double rate = now.requests / then->requests;
    const double tail =
        then->p99_microseconds > 0 ? now.p99_microseconds / then->p99_microseconds : 1;
    all.push_back(
        {.id = base::Cat("gain.", now.name),
         .level = Level::kInfo,
         .seen = base::Cat(now.name, ": ", Fixed(rate, 2), " times the requests, ", Fixed(tail, 2),
                           " times the p99 (", Fixed(then->p99_microseconds / 1000, 2), " -> ",
                           Fixed(now.p99_microseconds / 1000, 2), " ms), batches of ",
                           Fixed(then->batch_rows, 1), " -> ", Fixed(now.batch_rows, 1)),
         .action = rate >= 1 && tail <= 1 ? "keep the change"
                   : rate < 1 && tail > 1 ? "take the change back"
                                          : "weigh one against the other"});
  }
  return all;
}

}  // namespace tensord::doctor
