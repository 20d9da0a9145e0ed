// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/advise/observation.h"

#include <algorithm>
#include <map>

namespace tensord::doctor {
namespace {

// A mean of what was told.
struct Mean {
  double sum = 0;
  int count = 0;
  void Add(double value) {
    if (value < 0) return;
    sum += value;
    ++count;
  }
  double value() const { return count > 0 ? sum / count : -1; }
};

void ObserveGpus(const std::vector<View>& views, Observation* all) {
  for (size_t i = 0; i < views.back().gpus.gpus.size(); ++i) {
    GpuUse& use = all->gpus.emplace_back();
    Mean utilisation;
    Mean throttled;
    for (const View& view : views) {
      if (i >= view.gpus.gpus.size()) continue;
      const nvml::Gpu& gpu = view.gpus.gpus[i];
      use.name = gpu.name;
      if (gpu.utilisation) utilisation.Add(*gpu.utilisation / 100.0);
      if (gpu.memory_bytes > 0) {
        use.memory = std::max(use.memory, static_cast<double>(gpu.memory_used) /
                                              static_cast<double>(gpu.memory_bytes));
      }
      const std::string words = nvml::ThrottleWords(gpu.clock_reasons.value_or(0));
      throttled.Add(words.empty() ? 0 : 1);
      if (!words.empty()) use.throttle_words = words;
    }
    use.utilisation = utilisation.value();
    use.throttled = std::max(0.0, throttled.value());
  }
}

void ObserveModels(const std::vector<View>& views, Observation* all) {
  std::map<std::pair<std::string, std::string>, std::vector<const ModelRates*>> by_version;
  for (const View& view : views) {
    for (const ModelRates& m : view.models) by_version[{m.name, m.version}].push_back(&m);
  }
  for (const auto& [key, list] : by_version) {
    ModelRates& mean = all->models.emplace_back();
    mean.name = key.first;
    mean.version = key.second;
    double busy = 0;  // Looks with requests: the others have no batches and no shares.
    for (const ModelRates* m : list) {
      const auto looks = static_cast<double>(list.size());
      mean.requests += m->requests / looks;
      mean.errors += m->errors / looks;
      mean.unserved += m->unserved / looks;
      mean.queue += m->queue / looks;
      mean.in_flight += m->in_flight / looks;
      mean.p99_microseconds = std::max(mean.p99_microseconds, m->p99_microseconds);
      mean.p50_microseconds = std::max(mean.p50_microseconds, m->p50_microseconds);
      if (m->requests <= 0) continue;
      ++busy;
      mean.batch_rows += m->batch_rows;
      mean.queue_share += m->queue_share;
      mean.run_share += m->run_share;
    }
    for (double* sum : {&mean.batch_rows, &mean.queue_share, &mean.run_share}) {
      *sum = busy > 0 ? *sum / busy : 0;
    }
  }
}

void ObserveRanks(const std::vector<View>& views, Observation* all) {
  struct Means {
    Mean rate, wait, all_reduce, bytes, stage_share;
    double step = -1;
    std::string stage;  // The last that was told: earlier ones saw less.
  };
  std::map<std::string, Means> by_name;
  for (const View& view : views) {
    for (const Rank& rank : view.ranks) {
      Means& means = by_name[rank.name];
      means.rate.Add(rank.steps_per_second);
      means.wait.Add(rank.input_wait);
      means.all_reduce.Add(rank.all_reduce);
      means.bytes.Add(rank.all_reduce_bytes);
      if (!rank.input_stage.empty()) {
        if (rank.input_stage != means.stage) means.stage_share = {};
        means.stage = rank.input_stage;
        means.stage_share.Add(rank.input_stage_share);
      }
      means.step = std::max(means.step, rank.step);
    }
  }
  for (const auto& [name, means] : by_name) {
    all->ranks.push_back({.name = name,
                          .step = means.step,
                          .steps_per_second = means.rate.value(),
                          .input_wait = means.wait.value(),
                          .input_stage = means.stage,
                          .input_stage_share = means.stage_share.value(),
                          .all_reduce = means.all_reduce.value(),
                          .all_reduce_bytes = means.bytes.value()});
  }
}

}  // namespace

Observation Observe(const std::vector<View>& views) {
  Observation all;
  all.looks = static_cast<int>(views.size());
  if (views.empty()) return all;
  Mean cpu, cpu_wait, running, pressure_cpu, pressure_io, network;
  for (const View& view : views) {
    all.seconds += view.rates.seconds;
    cpu.Add(view.rates.cpu);
    cpu_wait.Add(view.rates.cpu_wait);
    running.Add(view.host.running);
    pressure_cpu.Add(view.host.pressure_cpu);
    pressure_io.Add(view.host.pressure_io);
    network.Add(view.rates.network_in + view.rates.network_out);
    if (view.host.memory_bytes > 0) {
      all.memory = std::max(all.memory, 1 - static_cast<double>(view.host.memory_available) /
                                                static_cast<double>(view.host.memory_bytes));
    }
    all.swap_bytes = std::max(all.swap_bytes, static_cast<double>(view.host.swap_used));
  }
  all.cpus = views.back().cpus;
  all.cpu = std::max(0.0, cpu.value());
  all.cpu_wait = std::max(0.0, cpu_wait.value());
  all.running = std::max(0.0, running.value());
  all.pressure_cpu = pressure_cpu.value();
  all.pressure_io = pressure_io.value();
  all.network_bytes = std::max(0.0, network.value());
  ObserveGpus(views, &all);
  ObserveModels(views, &all);
  ObserveRanks(views, &all);
  return all;
}

}  // namespace tensord::doctor
