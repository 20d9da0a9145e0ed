// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "bench/load.h"

namespace tensord::bench {
namespace {

double Microseconds(absl::Duration duration) { return absl::ToDoubleMicroseconds(duration); }

double PerRequest(absl::Duration cpu, uint64_t answered) {
  return answered == 0 ? 0 : Microseconds(cpu) / static_cast<double>(answered);
}

}  // namespace

std::string TextReport(const LoadPlan& plan, const LoadResult& result) {
  std::string text = fmt::format(
      "{} connections, {} in flight, {:.1f} s: {} answered ({:.0f}/s), {} failed\n"
      "latency  p50 {:.0f} us  p90 {:.0f} us  p99 {:.0f} us  max {:.0f} us\n",
      plan.connections, plan.in_flight, absl::ToDoubleSeconds(result.duration), result.answered,
      result.rate(), result.failed, Microseconds(result.Quantile(0.5)),
      Microseconds(result.Quantile(0.9)), Microseconds(result.Quantile(0.99)),
      Microseconds(result.Quantile(1)));
  if (!result.cpu.empty()) {
    text += fmt::format("server CPU {:.2f} us a request:", result.CpuMicroseconds());
    for (const auto& [role, cpu] : result.cpu) {
      text += fmt::format("  {} {:.2f}", role, PerRequest(cpu, result.answered));
    }
    text += fmt::format("   (client {:.2f})\n", PerRequest(result.client_cpu, result.answered));
  }
  for (const auto& [reason, count] : result.reasons) {
    text += fmt::format("{} x {}\n", count, reason);
  }
  return text;
}

std::string JsonReport(const LoadPlan& plan, const LoadResult& result) {
  std::string cpu;
  for (const auto& [role, used] : result.cpu) {
    cpu += fmt::format("{}\"{}\": {:.3f}", cpu.empty() ? "" : ", ", role,
                       PerRequest(used, result.answered));
  }
  return fmt::format(
      R"({{"protocol": "{}", "connections": {}, "in_flight": {}, "seconds": {:.3f}, )"
      R"("answered": {}, "failed": {}, "requests_per_second": {:.1f}, "p50_us": {:.0f}, )"
      R"("p90_us": {:.0f}, "p99_us": {:.0f}, "max_us": {:.0f}, "cpu_us_per_request": {:.3f}, )"
      R"("client_cpu_us_per_request": {:.3f}, "cpu_us_per_request_by_process": {{{}}}}})"
      "\n",
      plan.rest ? "rest" : "grpc", plan.connections, plan.in_flight,
      absl::ToDoubleSeconds(result.duration), result.answered, result.failed, result.rate(),
      Microseconds(result.Quantile(0.5)), Microseconds(result.Quantile(0.9)),
      Microseconds(result.Quantile(0.99)), Microseconds(result.Quantile(1)),
      result.CpuMicroseconds(), PerRequest(result.client_cpu, result.answered), cpu);
}

}  // namespace tensord::bench
