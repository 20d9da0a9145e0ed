// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "doctor/advise/cost.h"
#include "doctor/advise/decide.h"
#include "doctor/checks/checks.h"
#include "doctor/report.h"
#include "doctor/testing/fake_machine.h"
#include "doctor/top/watcher.h"

namespace tensord::doctor {
namespace {

// TENSORD_WRITE_GOLDEN=1 makes the files anew; look at what changes before you commit it.
void ExpectGolden(const std::string& text, const std::string& name) {
  const std::string path = std::string(testing::kGolden) + name;
  if (std::getenv("TENSORD_WRITE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string golden{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(text, golden) << path;
}

TEST(DoctorGolden, AMachineWithoutAGpu) {
  Machine machine = testing::MachineOf("cpu_machine");
  Findings findings = CheckAll(machine, {.models = {}, .ports = {8500, 8501}});
  std::erase_if(findings, [](const Finding& f) { return f.id == "disk.file_system"; });
  ExpectGolden(ToTable(findings, {}), "cpu_machine.txt");
  EXPECT_EQ(ExitCode(findings), 0);
}

TEST(DoctorGolden, AMachineWithTwoGpusAndAQuota) {
  Machine machine = testing::GpuMachine();
  machine.environment = {
      {"TF_CPP_MIN_LOG_LEVEL", "3"},
      {"TF_XLA_FLAGS", "--tf_xla_auto_jit=2 --tf_xla_cpu_jit"},
      {"CUDA_VISIBLE_DEVICES", "0,2"},
      {"LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs"},
      {"TF_NUM_INTEROP_THREADS", "1"},
      {"TF_CONFIG",
       R"({"cluster": {"worker": ["a:1000", "b"]}, "task": {"type": "worker", "index": 2}})"},
      {"https_proxy", "http://user:secret@proxy:3128"}};
  Findings findings = CheckAll(machine, {.models = {}, .ports = {8500, 40000}});
  std::erase_if(findings, [](const Finding& f) { return f.id == "disk.file_system"; });
  ExpectGolden(ToTable(findings, {}), "gpu_machine.txt");
  ExpectGolden(ToJson(findings), "gpu_machine.json");
  EXPECT_EQ(ExitCode(findings), 2);
}

// ---- top and advise
// -------------------------------------------------------------------------------

class SteppedClock : public base::Clock {
 public:
  absl::Time Now() const override { return now_; }
  void Step(absl::Duration duration) { now_ += duration; }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

// What `tensord top` shows of a machine whose files become those of its folder "later" within two
// seconds; with the models of a server whose page is in it.
View LookTwice(const std::string& name, Machine machine) {
  namespace fs = std::filesystem;
  const fs::path golden = std::string(testing::kGolden) + name;
  const fs::path root = fs::path(::testing::TempDir()) / ("top_" + name);
  fs::remove_all(root);
  fs::copy(golden, root, fs::copy_options::recursive);
  machine.root = root;
  SteppedClock clock;
  WatchPlan plan;
  plan.ranks_file = "/job/status.json";
  Watcher watcher(machine, plan, &clock);
  watcher.Look();
  fs::copy(golden / "later", root,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  clock.Step(absl::Seconds(2));
  View view = watcher.Look();
  view.gpus = machine.gpus;
  const auto page = machine.Read("/later/server/metrics");
  if (!page.has_value()) return view;
  std::ifstream first(golden / "server/metrics");
  const std::string before{std::istreambuf_iterator<char>(first), std::istreambuf_iterator<char>()};
  view.server = "127.0.0.1:8501";
  view.models = RatesOf(*ParseMetrics(before), *ParseMetrics(*page), 2);
  return view;
}

// As in a terminal without colours, and for scripts.
void ExpectGoldens(const View& view, const std::string& name) {
  ExpectGolden(ViewText(view, false), "top_" + name + ".txt");
  ExpectGolden(ViewJson(view), "top_" + name + ".json");
  const Findings advice = Decide(Observe({view, view, view}));
  ExpectGolden(ToTable(advice, {}), "advise_" + name + ".txt");
  ExpectGolden(ToJson(advice), "advise_" + name + ".json");
}

TEST(TopGolden, AMachineWithoutAGpuAndAJobThatExchangesMuch) {
  ExpectGoldens(LookTwice("cpu_machine", testing::MachineOf("cpu_machine")), "cpu_machine");
}

TEST(TopGolden, AMachineWithTwoGpusAJobThatWaitsForItsInputAndAServer) {
  ExpectGoldens(LookTwice("gpu_machine", testing::GpuMachine()), "gpu_machine");
}

TEST(AdviseGolden, OwningAndRentingByTheBuiltInPrices) {
  const Prices prices;
  ExpectGolden(CostText(prices, Compare(prices)), "advise_cost.txt");
}

}  // namespace
}  // namespace tensord::doctor
