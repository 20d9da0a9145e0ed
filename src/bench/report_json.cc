// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/json_text.h"
#include "bench/report.h"
#include "bench/tally.h"

namespace tensord::bench {
namespace {

double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

std::string LatencyJson(const Histogram& histogram) {
  JsonObject object;
  object.Count("count", histogram.count()).Number("mean_us", histogram.mean() / 1e3);
  constexpr std::pair<const char*, double> kShares[] = {
      {"p50_us", 0.5},  {"p75_us", 0.75},    {"p90_us", 0.9},      {"p95_us", 0.95},
      {"p99_us", 0.99}, {"p99_9_us", 0.999}, {"p99_99_us", 0.9999}};
  for (const auto& [name, share] : kShares) {
    object.Number(name, Microseconds(histogram.Quantile(share)));
  }
  object.Number("max_us", Microseconds(histogram.max()));
  if (histogram.count() > 0) object.Text("hdr_histogram_ns", histogram.Encode());
  return object.Done();
}

std::string ErrorsJson(const LoadPlan& plan, const Tally& tally) {
  JsonObject object;
  for (const auto& [code, error] : tally.errors) {
    object.Raw(CodeName(code, plan.rest),
               JsonObject().Count("count", error.count).Text("first", error.first_words).Done());
  }
  return object.Done();
}

std::string KindsJson(const LoadPlan& plan, const Tally& tally) {
  JsonArray kinds;
  for (size_t i = 0; i < tally.kinds.size(); ++i) {
    const Kind& kind = plan.mix->kinds[i];
    JsonObject object;
    object.Text("name", kind.name).Number("weight", kind.weight, 6);
    if (kind.deadline != absl::InfiniteDuration()) {
      object.Number("deadline_ms", absl::ToDoubleMilliseconds(kind.deadline));
    }
    object.Count("variants", kind.variants.size())
        .Count("request_bytes", kind.variants.front().bytes.size())
        .Count("answered", tally.kinds[i].answered)
        .Count("failed", tally.kinds[i].failed);
    if (tally.kinds[i].latency.count() > 0) {
      object.Raw("latency", LatencyJson(tally.kinds[i].latency));
    }
    kinds.Add(object.Done());
  }
  return kinds.Done();
}

std::string SecondsJson(const LoadResult& result) {
  JsonArray seconds;
  for (const SecondSummary& second : result.seconds) {
    seconds.Add(JsonObject()
                    .Count("answered", second.answered)
                    .Count("failed", second.failed)
                    .Count("in_flight", second.out)
                    .Number("p50_us", Microseconds(second.p50_ns))
                    .Number("p99_us", Microseconds(second.p99_ns))
                    .Done());
  }
  return seconds.Done();
}

std::string_view PacingName(Pacing pacing) {
  if (pacing == Pacing::kClosed) return "closed";
  return pacing == Pacing::kPoisson ? "poisson" : "constant";
}

void AddPlan(const LoadPlan& plan, JsonObject* object) {
  object->Text("protocol", plan.rest ? "rest" : "grpc")
      .Text("pacing", PacingName(plan.pacing))
      .Count("connections", static_cast<uint64_t>(plan.connections))
      .Flag("one_shot", plan.one_shot)
      .Count("in_flight", static_cast<uint64_t>(plan.in_flight))
      .Count("threads", static_cast<uint64_t>(plan.threads))
      .Number("warm_up_seconds", absl::ToDoubleSeconds(plan.warm_up));
  if (plan.pacing != Pacing::kClosed) object->Number("offered_per_second", plan.rate);
}

void AddResult(const LoadPlan& plan, const LoadResult& result, JsonObject* object) {
  const Tally& tally = result.tally;
  JsonObject cpu;
  for (const auto& [role, used] : result.cpu) cpu.Number(role, result.PerAnswer(used));
  object->Number("seconds", absl::ToDoubleSeconds(result.duration))
      .Count("answered", tally.answered)
      .Count("failed", tally.failed)
      .Count("refused", tally.refused)
      .Count("sent_in_all", result.sent)
      .Number("requests_per_second", result.rate(), 1)
      .Number("p50_us", Microseconds(tally.latency.Quantile(0.5)))
      .Number("p90_us", Microseconds(tally.latency.Quantile(0.9)))
      .Number("p99_us", Microseconds(tally.latency.Quantile(0.99)))
      .Number("max_us", Microseconds(tally.latency.max()))
      .Number("cpu_us_per_request", result.CpuMicroseconds())
      .Number("client_cpu_us_per_request", result.PerAnswer(result.client_cpu))
      .Raw("cpu_us_per_request_by_process", cpu.Done())
      .Flag("generator_was_the_limit", result.GeneratorWasTheLimit(plan))
      .Raw("latency", LatencyJson(tally.latency))
      .Raw("latency_from_sending", LatencyJson(tally.service))
      .Raw("latency_of_refusals", LatencyJson(tally.refusal))
      .Raw("lateness_of_sending", LatencyJson(tally.lateness))
      .Raw("errors", ErrorsJson(plan, tally))
      .Raw("requests", KindsJson(plan, tally))
      .Raw("by_second", SecondsJson(result));
  if (!result.ended_early.empty()) object->Text("ended_early", result.ended_early);
}

std::string MachineJson(const Machine& machine) {
  return JsonObject()
      .Text("cpu", machine.cpu)
      .Count("cpus", static_cast<uint64_t>(machine.cpus))
      .Text("kernel", machine.kernel)
      .Done();
}

}  // namespace

std::string JsonReport(const ReportFacts& facts, const Series& series) {
  JsonObject object;
  object.Text("tensord", facts.version)
      .Text("server", facts.server)
      .Text("command", facts.command)
      .Raw("machine", MachineJson(facts.machine));
  if (series.mode == SeriesMode::kOne) {
    const Point& only = series.points.front();
    AddPlan(only.plan, &object);
    AddResult(only.plan, only.result, &object);
    return object.Done() + "\n";
  }
  const bool overload = series.mode == SeriesMode::kOverload;
  object.Text("series", overload ? "overload" : "rates");
  if (overload) object.Number("capacity_per_second", series.capacity, 1);
  JsonArray points;
  for (const Point& point : series.points) {
    JsonObject part;
    part.Text("title", point.title);
    if (point.factor > 0) {
      part.Number("load", point.factor);
      part.Number("goodput_of_capacity", point.result.rate() / series.capacity, 4);
    }
    AddPlan(point.plan, &part);
    AddResult(point.plan, point.result, &part);
    points.Add(part.Done());
  }
  return object.Raw("points", points.Done()).Done() + "\n";
}

}  // namespace tensord::bench
