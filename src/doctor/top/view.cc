// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/top/view.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "doctor/json.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

std::string Right(std::string_view text, size_t columns) {
  return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + std::string(text);
}

std::string Left(std::string_view text, size_t columns) {
  std::string out = Printable(text.substr(0, columns));
  out.resize(columns, ' ');
  return out;
}

// "[######    ]", red from 90 % on.
std::string Bar(double share, bool colour) {
  constexpr size_t kColumns = 20;
  share = std::clamp(share, 0.0, 1.0);
  const auto full = static_cast<size_t>(std::lround(share * kColumns));
  std::string bar = std::string(full, '#') + std::string(kColumns - full, ' ');
  if (colour) bar = base::Cat(share >= 0.9 ? "\033[31m" : "\033[32m", bar, "\033[0m");
  return base::Cat("[", bar, "] ", Right(Percent(share), 6));
}

std::string Told(double value, int digits, std::string_view unit) {
  return value < 0 ? "-" : base::Cat(Fixed(value, digits), unit);
}

std::string PerSecond(double bytes) {
  return base::Cat(Bytes(static_cast<uint64_t>(std::max(0.0, bytes))), "/s");
}

double MemoryShare(const HostCounters& host) {
  if (host.memory_bytes == 0) return 0;
  return 1 - static_cast<double>(host.memory_available) / static_cast<double>(host.memory_bytes);
}

double MemoryShare(const nvml::Gpu& gpu) {
  if (gpu.memory_bytes == 0) return 0;
  return static_cast<double>(gpu.memory_used) / static_cast<double>(gpu.memory_bytes);
}

std::string HostText(const View& view, bool colour) {
  const HostCounters& host = view.host;
  std::string text =
      base::Cat("CPU     ", Bar(view.rates.cpu, colour), "  of ", view.cpus, ", ", host.running,
                " running, ", Percent(view.rates.cpu_wait), " waiting for disks\n", "Memory  ",
                Bar(MemoryShare(host), colour), "  ", Bytes(host.memory_available), " of ",
                Bytes(host.memory_bytes), " available, swap ", Bytes(host.swap_used), "\n");
  text += base::Cat("Waiting  CPU ", Told(host.pressure_cpu, 0, " %"), ", memory ",
                    Told(host.pressure_memory, 0, " %"), ", disks ",
                    Told(host.pressure_io, 0, " %"), " of the last 10 s\n");
  return text + base::Cat("Disk     ", PerSecond(view.rates.disk_read), " read, ",
                          PerSecond(view.rates.disk_written), " written\nNetwork  ",
                          PerSecond(view.rates.network_in), " in, ",
                          PerSecond(view.rates.network_out), " out\n");
}

std::string GpuText(const nvml::Gpu& gpu, size_t index, bool colour) {
  std::string text = base::Cat("GPU ", index, "   ");
  text += gpu.utilisation ? Bar(*gpu.utilisation / 100.0, colour) : "[ not told            ]";
  text += base::Cat("  ", gpu.name, "\n        ", Bar(MemoryShare(gpu), colour), "  ",
                    Bytes(gpu.memory_used), " of ", Bytes(gpu.memory_bytes));
  if (gpu.watts) {
    text += base::Cat(", ", Fixed(*gpu.watts, 0), " W of ",
                      gpu.watts_limit ? Fixed(*gpu.watts_limit, 0) : "?");
  }
  if (gpu.celsius) text += base::Cat(", ", *gpu.celsius, " C");
  if (gpu.sm_megahertz) text += base::Cat(", ", *gpu.sm_megahertz, " MHz");
  const std::string slow = nvml::ThrottleWords(gpu.clock_reasons.value_or(0));
  if (!slow.empty()) text += base::Cat("\n        slowed down: ", slow);
  for (const nvml::GpuProcess& process : gpu.processes) {
    text += base::Cat("\n        process ", process.pid, ": ",
                      process.bytes ? Bytes(*process.bytes) : "memory not told");
  }
  return text + "\n";
}

std::string ModelsText(const View& view) {
  if (view.server.empty()) return "";
  std::string text = base::Cat("\ntensord at ", view.server);
  if (!view.server_problem.empty()) return base::Cat(text, ": ", view.server_problem, "\n");
  text += base::Cat("\n", Left("model", 26), Right("version", 8), Right("req/s", 9),
                    Right("err/s", 8), Right("queue", 7), Right("runs", 6), Right("batch", 7),
                    Right("p50", 10), Right("p99", 10), "\n");
  for (const ModelRates& m : view.models) {
    text += base::Cat(Left(m.name, 26), Right(m.version, 8), Right(Fixed(m.requests, 1), 9),
                      Right(Fixed(m.errors, 1), 8), Right(Fixed(m.queue, 0), 7),
                      Right(Fixed(m.in_flight, 0), 6), Right(Fixed(m.batch_rows, 1), 7),
                      Right(base::Cat(Fixed(m.p50_microseconds / 1000, 2), " ms"), 10),
                      Right(base::Cat(Fixed(m.p99_microseconds / 1000, 2), " ms"), 10), "\n");
  }
  return text;
}

std::string RanksText(const View& view) {
  if (!view.ranks_problem.empty()) return base::Cat("\ntraining: ", view.ranks_problem, "\n");
  if (view.ranks.empty()) return "";
  std::string text = base::Cat("\n", Left("rank", 26), Right("step", 10), Right("steps/s", 10),
                               Right("input wait", 12), Right("exchange", 10), Right("a step", 12),
                               "  slow stage\n");
  for (const Rank& rank : view.ranks) {
    text +=
        base::Cat(Left(rank.name, 26), Right(Told(rank.step, 0, ""), 10),
                  Right(Told(rank.steps_per_second, 2, ""), 10),
                  Right(rank.input_wait < 0 ? "-" : Percent(rank.input_wait), 12),
                  Right(rank.all_reduce < 0 ? "-" : Percent(rank.all_reduce), 10),
                  Right(rank.all_reduce_bytes < 0
                            ? "-"
                            : Bytes(static_cast<uint64_t>(std::min(rank.all_reduce_bytes, 1e18))),
                        12),
                  "  ", rank.input_stage.empty() ? "-" : Printable(rank.input_stage), "\n");
  }
  return text;
}

std::string GpuJson(const nvml::Gpu& gpu) {
  JsonObject object;
  object.Add("name", gpu.name).Add("uuid", gpu.uuid).Add("bus_id", gpu.bus_id);
  const auto add = [&object](std::string_view name, const auto& value) {
    if (value) {
      object.Add(name, static_cast<double>(*value));
    } else {
      object.Raw(name, "null");
    }
  };
  add("utilisation_percent", gpu.utilisation);
  object.Add("memory_bytes", static_cast<double>(gpu.memory_bytes));
  object.Add("memory_used_bytes", static_cast<double>(gpu.memory_used));
  add("watts", gpu.watts);
  add("watts_limit", gpu.watts_limit);
  add("celsius", gpu.celsius);
  add("sm_megahertz", gpu.sm_megahertz);
  object.Add("slowed_down_by", nvml::ThrottleWords(gpu.clock_reasons.value_or(0)));
  std::vector<std::string> processes;
  for (const nvml::GpuProcess& process : gpu.processes) {
    JsonObject one;
    one.Add("pid", static_cast<double>(process.pid));
    one.Raw("bytes", process.bytes ? JsonNumber(static_cast<double>(*process.bytes)) : "null");
    processes.push_back(one.text());
  }
  return object.Raw("processes", JsonArray(processes)).text();
}

std::string HostJson(const View& view) {
  const auto told = [](double value) { return value < 0 ? "null" : JsonNumber(value); };
  return JsonObject()
      .Add("cpus", static_cast<double>(view.cpus))
      .Add("cpu_share", view.rates.cpu)
      .Add("cpu_wait_share", view.rates.cpu_wait)
      .Add("running", static_cast<double>(view.host.running))
      .Add("memory_bytes", static_cast<double>(view.host.memory_bytes))
      .Add("memory_available_bytes", static_cast<double>(view.host.memory_available))
      .Add("swap_used_bytes", static_cast<double>(view.host.swap_used))
      .Raw("pressure_cpu_percent", told(view.host.pressure_cpu))
      .Raw("pressure_memory_percent", told(view.host.pressure_memory))
      .Raw("pressure_io_percent", told(view.host.pressure_io))
      .Add("disk_read_bytes_per_second", view.rates.disk_read)
      .Add("disk_written_bytes_per_second", view.rates.disk_written)
      .Add("network_in_bytes_per_second", view.rates.network_in)
      .Add("network_out_bytes_per_second", view.rates.network_out)
      .text();
}

std::string ModelJson(const ModelRates& m) {
  return JsonObject()
      .Add("model", m.name)
      .Add("version", m.version)
      .Add("requests_per_second", m.requests)
      .Add("errors_per_second", m.errors)
      .Add("unserved_per_second", m.unserved)
      .Add("queue", m.queue)
      .Add("in_flight_runs", m.in_flight)
      .Add("batch_rows_mean", m.batch_rows)
      .Add("p50_us", m.p50_microseconds)
      .Add("p99_us", m.p99_microseconds)
      .Add("queue_share", m.queue_share)
      .Add("run_share", m.run_share)
      .text();
}

std::string RankJson(const Rank& rank) {
  const auto told = [](double value) { return value < 0 ? "null" : JsonNumber(value); };
  return JsonObject()
      .Add("name", rank.name)
      .Raw("step", told(rank.step))
      .Raw("steps_per_second", told(rank.steps_per_second))
      .Raw("input_wait", told(rank.input_wait))
      .Add("input_stage", rank.input_stage)
      .Raw("input_stage_share", told(rank.input_stage_share))
      .Raw("all_reduce", told(rank.all_reduce))
      .Raw("all_reduce_bytes", told(rank.all_reduce_bytes))
      .text();
}

template <typename T, typename Function>
std::string List(const std::vector<T>& items, Function function) {
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const T& item : items) texts.push_back(function(item));
  return JsonArray(texts);
}

}  // namespace

std::string ViewText(const View& view, bool colour) {
  std::string text = HostText(view, colour);
  if (!view.gpus.problem.empty()) text += base::Cat("GPU      none: ", view.gpus.problem, "\n");
  for (size_t i = 0; i < view.gpus.gpus.size(); ++i) {
    text += GpuText(view.gpus.gpus[i], i, colour);
  }
  return text + ModelsText(view) + RanksText(view);
}

std::string ViewJson(const View& view) {
  JsonObject object;
  object.Add("seconds", view.rates.seconds).Raw("host", HostJson(view));
  object.Raw("gpus", List(view.gpus.gpus, GpuJson)).Add("gpu_problem", view.gpus.problem);
  object.Raw("models", List(view.models, ModelJson)).Add("server_problem", view.server_problem);
  object.Raw("ranks", List(view.ranks, RankJson)).Add("ranks_problem", view.ranks_problem);
  return object.text() + "\n";
}

}  // namespace tensord::doctor
