// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "doctor/advise/cost.h"
#include "doctor/advise/decide.h"
#include "doctor/testing/fake_machine.h"

namespace tensord::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Observation Quiet() { return {.looks = 5, .seconds = 5, .cpus = 8, .cpu = 0.1}; }

Rank Waiting(double share) { return {.name = "worker/0", .input_wait = share}; }

TEST(Advise, SaysWhenNothingHoldsTheMachineBack) {
  const Findings all = Decide(Quiet());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].id, "none");
  EXPECT_EQ(all[0].level, Level::kOk);
}

TEST(Advise, AnInputPipelineIsNamedWithItsShareAndItsStage) {
  Observation seen = Quiet();
  seen.gpus = {{.name = "H100", .utilisation = 0.3}};
  seen.ranks = {{.name = "worker/0", .input_wait = 0.8}, {.name = "worker/1", .input_wait = 0.9}};
  seen.cpu = 0.02;
  EXPECT_EQ(Decide(seen)[0].id, "input.pipeline");
  EXPECT_THAT(Decide(seen)[0].seen, HasSubstr("85 % of the step time is waiting for input"));
  EXPECT_THAT(Decide(seen)[0].seen, HasSubstr("mostly idle"));
  EXPECT_THAT(Decide(seen)[0].action, HasSubstr("num_parallel_calls"));
  seen.cpu = 1.0 / 8;
  EXPECT_THAT(Decide(seen)[0].seen, HasSubstr("one CPU is busy"));
  seen.cpu = 0.95;
  EXPECT_THAT(Decide(seen)[0].action, HasSubstr("more CPUs and memory"));
  seen.pressure_io = 40;
  EXPECT_THAT(Decide(seen)[0].seen, HasSubstr("reading"));
  seen.ranks = {Waiting(0.03)};
  EXPECT_NE(Decide(seen)[0].id, "input.pipeline");
}

TEST(Advise, TheStageIsTheOneThatTensorFlowTimed) {
  Observation seen = Quiet();
  const auto stage = [&seen](const char* name, double cpu) {
    seen.cpu = cpu;
    seen.ranks = {
        Waiting(0.3),
        {.name = "worker/1", .input_wait = 0.8, .input_stage = name, .input_stage_share = 0.9}};
    return Decide(seen)[0];
  };
  EXPECT_THAT(stage("Map", 0.95).seen,
              HasSubstr("map: it runs one by one (90 % of the pipeline's own time)"));
  EXPECT_THAT(stage("Map", 0.95).action, HasSubstr("num_parallel_calls"));
  EXPECT_THAT(stage("ParallelMap", 0.95).action, HasSubstr("cache()"));
  EXPECT_THAT(stage("ParallelMap", 0.1).action, HasSubstr("private_threadpool_size"));
  EXPECT_THAT(stage("TFRecord", 0.1).action, HasSubstr("interleave"));
  EXPECT_THAT(stage("Generator", 0.1).seen, HasSubstr("Python generator"));
  EXPECT_THAT(stage("FlatMap", 0.1).seen, HasSubstr("reading"));
  EXPECT_THAT(stage("Some\x1b[2J", 0.1).seen, HasSubstr("Some"));
  seen.ranks[1].input_stage_share = 0.2;
  EXPECT_THAT(Decide(seen)[0].seen, HasSubstr("one CPU is busy")) << "no stage stands out";
}

TEST(Advise, AFullGpuThatIsNotBusyWantsMemoryNotSpeed) {
  Observation seen = Quiet();
  seen.gpus = {{.name = "A", .utilisation = 0.5, .memory = 0.95}};
  EXPECT_THAT(Decide(seen)[0].action, HasSubstr("more memory, not a faster one"));
  seen.gpus[0].utilisation = 0.95;
  EXPECT_EQ(Decide(seen)[0].id, "gpu.0.compute");
}

TEST(Advise, AGpuThatIsNotBusyThoughNothingIsWaitedForWantsLargerBatches) {
  Observation seen = Quiet();
  seen.gpus = {{.name = "A", .utilisation = 0.4, .memory = 0.2}, {.name = "B", .utilisation = 0}};
  seen.ranks = {{.name = "worker/0", .steps_per_second = 55, .input_wait = 0.03}};
  ASSERT_EQ(Decide(seen).size(), 1u);
  const Finding finding = Decide(seen)[0];
  EXPECT_EQ(finding.id, "batch.small");
  EXPECT_THAT(finding.seen, HasSubstr("busy 40 % with at most 20 % of their memory full"));
  EXPECT_THAT(finding.seen, HasSubstr("3 % of the step time is waiting for input"));
  EXPECT_THAT(finding.seen, HasSubstr("55.0 steps a second"));
  for (const char* fix : {"larger batch", "steps_per_execution", "jit_compile=True"}) {
    EXPECT_THAT(finding.action, HasSubstr(fix));
  }
  struct Case {
    const char* words;
    void (*change)(Observation*);
  };
  const Case kCases[] = {
      {"the input is waited for", [](Observation* o) { o->ranks[0].input_wait = 0.5; }},
      {"the wait was not told", [](Observation* o) { o->ranks[0].input_wait = -1; }},
      {"no rank is there", [](Observation* o) { o->ranks.clear(); }},
      {"other ranks are waited for", [](Observation* o) { o->ranks[0].all_reduce = 0.3; }},
      {"it is busy", [](Observation* o) { o->gpus[0].utilisation = 0.75; }},
      {"it is not used at all", [](Observation* o) { o->gpus[0].utilisation = 0; }},
      {"no memory is left", [](Observation* o) { o->gpus[0].memory = 0.95; }},
      {"it is slowed down", [](Observation* o) { o->gpus[0].throttled = 1; }},
      {"the CPUs are all busy", [](Observation* o) { o->cpu = 0.95; }},
  };
  for (const Case& c : kCases) {
    Observation other = seen;
    c.change(&other);
    for (const Finding& found : Decide(other)) EXPECT_NE(found.id, "batch.small") << c.words;
  }
}

TEST(Advise, CommunicationAndOversubscriptionAndMemoryAreNamed) {
  Observation seen = Quiet();
  seen.ranks = {{.name = "worker/0", .input_wait = 0.01, .all_reduce = 0.4}};
  EXPECT_EQ(Decide(seen)[0].id, "communication");
  seen.ranks[0].all_reduce_bytes = 3 << 20;
  seen.ranks[0].steps_per_second = 2;
  EXPECT_THAT(Decide(seen)[0].seen, HasSubstr("worker/0 gives 3.0 MiB a step, 6.0 MiB/s"));
  seen.ranks.push_back({.name = "worker/1", .input_wait = 0.01, .all_reduce = 0.05});
  EXPECT_EQ(Decide(seen)[0].id, "ranks.uneven");
  EXPECT_THAT(Decide(seen)[0].why, HasSubstr("all wait for worker/1"));
  seen = Quiet();
  seen.running = 40;
  seen.pressure_cpu = 60;
  EXPECT_EQ(Decide(seen)[0].id, "threads.oversubscribed");
  seen = Quiet();
  seen.memory = 0.97;
  EXPECT_EQ(Decide(seen)[0].id, "memory.host");
}

TEST(Advise, AModelThatRunsCallByCallShouldBeBatched) {
  Observation seen = Quiet();
  ModelRates m;
  m.name = "half";
  m.version = "1";
  m.requests = 200;
  m.queue = 12;
  m.queue_share = 0.9;
  m.batch_rows = 1;
  seen.models = {m};
  EXPECT_THAT(Decide(seen)[0].action, HasSubstr("--enable_batching"));
  seen.models[0].batch_rows = 16;
  EXPECT_THAT(Decide(seen)[0].action, HasSubstr("more runs at once"));
  seen.models[0].queue_share = 0.1;
  EXPECT_EQ(Decide(seen)[0].id, "none");
}

TEST(Advise, WhatAChangeBroughtIsMeasured) {
  Observation before = Quiet();
  ModelRates m;
  m.name = "half";
  m.requests = 100;
  m.p99_microseconds = 20'000;
  before.models = {m};
  Observation after = before;
  after.models[0].requests = 250;
  after.models[0].p99_microseconds = 10'000;
  EXPECT_THAT(MeasuredGain(before, after)[0].seen,
              HasSubstr("2.50 times the requests, 0.50 times the p99"));
  EXPECT_EQ(MeasuredGain(before, after)[0].action, "keep the change");
  EXPECT_EQ(MeasuredGain(after, before)[0].action, "take the change back");
}

TEST(Advise, TimeThatGrowsWithTheDataCanBeDivided) {
  EXPECT_THAT(DecideGrowth({{1000, 10}, {2000, 20}}), IsEmpty());
  EXPECT_THAT(DecideGrowth({{1000, 10}, {2000, 20}, {4000, 40}})[0].action, HasSubstr("more GPUs"));
  EXPECT_THAT(DecideGrowth({{1000, 10}, {2000, 11}, {4000, 12}})[0].action, HasSubstr("would not"));
  EXPECT_EQ(DecideGrowth({{1000, 10}, {2000, 40}, {4000, 160}})[0].level, Level::kWarning);
  EXPECT_THAT(DecideGrowth({{1000, 10}, {1000, 40}, {1000, 160}}), IsEmpty());
}

TEST(Advise, RecordedLooksAreReadAgain) {
  View view;
  view.cpus = 8;
  view.rates.seconds = 1;
  view.rates.cpu = 0.25;
  view.host.memory_bytes = 100;
  view.host.memory_available = 40;
  view.gpus = testing::GpuMachine().gpus;
  view.ranks = {Waiting(0.6)};
  ModelRates m;
  m.name = "half";
  m.version = "3";
  m.requests = 5;
  view.models = {m};
  const auto views = ParseViews(ViewJson(view) + ViewJson(view));
  ASSERT_TRUE(views.ok()) << views.status();
  const Observation seen = Observe(*views);
  EXPECT_EQ(seen.looks, 2);
  EXPECT_DOUBLE_EQ(seen.cpu, 0.25);
  EXPECT_DOUBLE_EQ(seen.memory, 0.6);
  ASSERT_EQ(seen.gpus.size(), 2u);
  EXPECT_DOUBLE_EQ(seen.gpus[0].utilisation, 0.35);
  EXPECT_DOUBLE_EQ(seen.gpus[0].throttled, 1);
  EXPECT_DOUBLE_EQ(seen.ranks[0].input_wait, 0.6);
  EXPECT_DOUBLE_EQ(seen.models[0].requests, 5);
  EXPECT_THAT(std::string(ParseViews("{}\n").status().message()), HasSubstr("line 1"));
  EXPECT_FALSE(ParseViews("").ok());
}

TEST(Cost, OwningBreaksEvenWhereTheLinesCross) {
  Prices prices{.machine = 1000,
                .resale_share = 0,
                .kilowatts = 0,
                .kilowatts_idle = 0,
                .hosting_month = 0,
                .upkeep_month = 0,
                .rent_hour = 1,
                .rent_storage_month = 0,
                .utilisation = 0.5};
  // 365 a month: 1095 after three months.
  EXPECT_EQ(Compare(prices).break_even, 3);
  EXPECT_EQ(Compare(prices).own.size(), 37u);
  prices.machine = 1e6;
  EXPECT_EQ(Compare(prices).break_even, std::nullopt);
}

TEST(Cost, TheTableIsReadBackAndMistakesAreNamed) {
  EXPECT_TRUE(ParsePrices(PriceTable()).ok());
  const auto prices = ParsePrices("# mine\nmachine = 5000 # used\n\nmonths=12\n");
  ASSERT_TRUE(prices.ok()) << prices.status();
  EXPECT_EQ(prices->machine, 5000);
  EXPECT_EQ(prices->months, 12);
  for (const char* text : {"machin = 1", "machine = x", "machine", "utilisation = 2", "months = 0",
                           "machine = -1", "machine = nan"}) {
    EXPECT_THAT(std::string(ParsePrices(text).status().message()), HasSubstr("line 1")) << text;
  }
}

TEST(Cost, ThePicturesShowTheMonthAndTheAssumptions) {
  const Prices prices;
  const Costs costs = Compare(prices);
  ASSERT_TRUE(costs.break_even.has_value());
  const std::string month = "month " + std::to_string(*costs.break_even);
  EXPECT_THAT(CostText(prices, costs), HasSubstr("break-even: " + month));
  EXPECT_THAT(CostText(prices, costs), HasSubstr("Assumptions:"));
  EXPECT_THAT(CostSvg(prices, costs), HasSubstr(month));
  EXPECT_THAT(CostSvg(prices, costs), ::testing::EndsWith("</svg>\n"));
}

}  // namespace
}  // namespace tensord::doctor
