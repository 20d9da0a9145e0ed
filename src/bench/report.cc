// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/tally.h"

namespace tensord::bench {
namespace {

constexpr size_t kErrorsShown = 20;
constexpr int64_t kLatenessWorthWords = 1'000'000;

double Percent(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

double PerSecond(uint64_t count, const LoadResult& result) {
  const double seconds = absl::ToDoubleSeconds(result.duration);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string PacingWords(const LoadPlan& plan) {
  if (plan.pacing == Pacing::kClosed) {
    return fmt::format("closed loop, {} in flight", plan.in_flight);
  }
  return fmt::format("open loop, {}, {:.6g}/s",
                     plan.pacing == Pacing::kPoisson ? "Poisson" : "constant", plan.rate);
}

std::string Heading(const ReportFacts& facts, const LoadPlan& plan) {
  return fmt::format("{} at {}, {} connection{}{}, {} thread{}; {}, {} CPUs, Linux {}\n",
                     plan.rest ? "REST" : "gRPC", facts.server, plan.connections,
                     plan.connections == 1 ? "" : "s", plan.one_shot ? " (one request each)" : "",
                     plan.threads, plan.threads == 1 ? "" : "s", facts.machine.cpu,
                     facts.machine.cpus, facts.machine.kernel);
}

std::string LatencyRow(std::string_view name, const Histogram& histogram) {
  return fmt::format("{:22} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", name,
                     ShortTime(static_cast<int64_t>(histogram.mean())),
                     ShortTime(histogram.Quantile(0.5)), ShortTime(histogram.Quantile(0.9)),
                     ShortTime(histogram.Quantile(0.99)), ShortTime(histogram.Quantile(0.999)),
                     ShortTime(histogram.max()));
}

std::string Latencies(const LoadPlan& plan, const Tally& tally) {
  std::string text = fmt::format("{:22} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "latency", "mean",
                                 "p50", "p90", "p99", "p99.9", "max");
  if (plan.pacing == Pacing::kClosed) {
    text += LatencyRow("  from sending", tally.latency);
  } else {
    text += LatencyRow("  from the due time", tally.latency);
    text += LatencyRow("  from sending", tally.service);
  }
  if (tally.refused > 0) text += LatencyRow("  of refusals", tally.refusal);
  return text;
}

std::string Cpu(const LoadResult& result) {
  if (result.cpu.empty()) {
    return fmt::format("client CPU {:.2f} us a request\n", result.PerAnswer(result.client_cpu));
  }
  std::string text = fmt::format("server CPU {:.2f} us a request:", result.CpuMicroseconds());
  for (const auto& [role, cpu] : result.cpu) {
    text += fmt::format("  {} {:.2f}", role, result.PerAnswer(cpu));
  }
  return text + fmt::format("   (client {:.2f})\n", result.PerAnswer(result.client_cpu));
}

std::string Kinds(const LoadPlan& plan, const Tally& tally) {
  if (tally.kinds.size() < 2) return "";
  std::string text = fmt::format("{:22} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "request", "answered",
                                 "failed", "p50", "p99", "max");
  for (size_t i = 0; i < tally.kinds.size() && i < Tally::kKindsInDetail; ++i) {
    const KindTally& kind = tally.kinds[i];
    text += fmt::format("  {:20} {:>9} {:>9} {:>9} {:>9} {:>9}\n", plan.mix->kinds[i].name,
                        kind.answered, kind.failed, ShortTime(kind.latency.Quantile(0.5)),
                        ShortTime(kind.latency.Quantile(0.99)), ShortTime(kind.latency.max()));
  }
  return text;
}

std::string Errors(const LoadPlan& plan, const Tally& tally) {
  std::vector<std::pair<int, ErrorCount>> errors(tally.errors.begin(), tally.errors.end());
  std::sort(errors.begin(), errors.end(),
            [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  if (errors.size() > kErrorsShown) errors.resize(kErrorsShown);
  std::string text;
  for (const auto& [code, error] : errors) {
    text += fmt::format("{} x {}{}{}\n", error.count, CodeName(code, plan.rest),
                        error.first_words.empty() ? "" : ", first: ", error.first_words);
  }
  return text;
}

// What makes the figures doubtful.
std::string Warnings(const LoadPlan& plan, const LoadResult& result) {
  std::string text;
  if (result.GeneratorWasTheLimit(plan)) {
    text += "this program used its threads fully and may have been the limit: more --threads\n";
  }
  const int64_t late = result.tally.lateness.Quantile(0.99);
  if (late > kLatenessWorthWords) {
    text += fmt::format(
        "requests went out late (p99 {}), which counts as latency: the CPUs are too busy for this "
        "rate, or more --threads help\n",
        ShortTime(late));
  }
  if (!result.ended_early.empty()) text += fmt::format("ended early: {}\n", result.ended_early);
  return text;
}

std::string PointText(const LoadPlan& plan, const LoadResult& result) {
  const Tally& tally = result.tally;
  std::string text = fmt::format(
      "{}, {:.1f} s after {:.1f} s of warm-up\n{} answered ({:.1f}/s), {} failed ({:.2f} %)\n",
      PacingWords(plan), absl::ToDoubleSeconds(result.duration),
      absl::ToDoubleSeconds(plan.warm_up), tally.answered, result.rate(), tally.failed,
      Percent(tally.failed, tally.answered + tally.failed));
  return text + Latencies(plan, tally) + Kinds(plan, tally) + Cpu(result) + Errors(plan, tally) +
         Warnings(plan, result);
}

std::string RateTable(const Series& series) {
  std::string text =
      fmt::format("{:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "offered/s",
                  "answered/s", "failed %", "p50", "p90", "p99", "p99.9", "max", "CPU us");
  for (const Point& point : series.points) {
    const Tally& tally = point.result.tally;
    text += fmt::format(
        "{:>10.6g} {:>10.1f} {:>9.2f} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", point.plan.rate,
        point.result.rate(), Percent(tally.failed, tally.answered + tally.failed),
        ShortTime(tally.latency.Quantile(0.5)), ShortTime(tally.latency.Quantile(0.9)),
        ShortTime(tally.latency.Quantile(0.99)), ShortTime(tally.latency.Quantile(0.999)),
        ShortTime(tally.latency.max()),
        point.result.cpu.empty() ? "-" : fmt::format("{:.1f}", point.result.CpuMicroseconds()));
  }
  return text;
}

std::string OverloadTable(const Series& series) {
  std::string text = fmt::format("capacity {:.1f}/s ({}, without deadlines)\n", series.capacity,
                                 PacingWords(series.points.front().plan));
  text += fmt::format("{:>6} {:>10} {:>10} {:>10} {:>9} {:>9} {:>10} {:>9} {:>9} {:>10}\n", "load",
                      "offered/s", "goodput/s", "% of cap.", "p50", "p99", "refused/s", "p50",
                      "p99", "other/s");
  for (const Point& point : series.points) {
    if (point.factor == 0) continue;
    const LoadResult& result = point.result;
    const Tally& tally = result.tally;
    text += fmt::format(
        "{:>6} {:>10.1f} {:>10.1f} {:>10.1f} {:>9} {:>9} {:>10.1f} {:>9} {:>9} {:>10.1f}\n",
        fmt::format("{:g}x", point.factor), PerSecond(tally.answered + tally.failed, result),
        result.rate(), 100 * result.rate() / series.capacity,
        ShortTime(tally.latency.Quantile(0.5)), ShortTime(tally.latency.Quantile(0.99)),
        PerSecond(tally.refused, result), ShortTime(tally.refusal.Quantile(0.5)),
        ShortTime(tally.refusal.Quantile(0.99)), PerSecond(tally.failed - tally.refused, result));
  }
  return text + "goodput: answers within the deadline; their p50 and p99; then those of refusals\n";
}

}  // namespace

std::string ShortTime(int64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds == 0) return "-";
  if (nanoseconds < 1'000) return fmt::format("{} ns", nanoseconds);
  const double unit = nanoseconds < 1'000'000 ? 1e3 : nanoseconds < 1'000'000'000 ? 1e6 : 1e9;
  const std::string_view name = unit == 1e3 ? "us" : unit == 1e6 ? "ms" : "s";
  const double scaled = value / unit;
  return fmt::format("{:.{}f} {}", scaled, scaled < 10 ? 2 : scaled < 100 ? 1 : 0, name);
}

std::string ProgressLine(const std::string& title, const Progress& progress) {
  return fmt::format("{}{}{:4.0f} s  {}/s  in flight {}  errors {}  p50 {}  p99 {}", title,
                     title.empty() ? "" : ": ", absl::ToDoubleSeconds(progress.passed),
                     progress.second.answered, progress.second.out, progress.failed,
                     ShortTime(progress.second.p50_ns), ShortTime(progress.second.p99_ns));
}

std::string TextReport(const ReportFacts& facts, const Series& series) {
  const Point& first = series.points.front();
  std::string text = Heading(facts, first.plan);
  if (series.mode == SeriesMode::kOne) return text + PointText(first.plan, first.result);
  text += series.mode == SeriesMode::kRates ? RateTable(series) : OverloadTable(series);
  for (const Point& point : series.points) {
    const std::string notes =
        Errors(point.plan, point.result.tally) + Warnings(point.plan, point.result);
    if (!notes.empty()) text += fmt::format("\n{}:\n{}", point.title, notes);
  }
  return text;
}

}  // namespace tensord::bench
