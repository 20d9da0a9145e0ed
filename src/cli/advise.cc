// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "cli/between.h"
#include "cli/commands.h"
#include "doctor/advise/cost.h"
#include "doctor/advise/decide.h"
#include "doctor/report.h"
#include "doctor/top/watcher.h"
#include "doctor/words.h"

namespace tensord::cli {
namespace {

constexpr size_t kLooksMax = 100'000;  // A day of looks a second.

struct AdviseOptions {
  doctor::WatchPlan plan;
  double seconds = 10;
  double interval = 1;
  std::string from;
  std::string before;
  std::vector<std::string> runs;  // "examples:seconds"
  bool json = false;
};

struct CostOptions {
  std::string table;
  std::string svg;
  bool print_table = false;
  bool json = false;
};

void Describe(CLI::App& app, AdviseOptions* options) {
  app.add_option("--seconds", options->seconds, "How long to watch")
      ->check(Between(0.2, 86'400.0))
      ->capture_default_str();
  app.add_option("--interval", options->interval, "Seconds between two looks")
      ->check(Between(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--server", options->plan.server, "As for `tensord top`");
  app.add_option("--metrics_path", options->plan.metrics_path, "As for `tensord top`")
      ->capture_default_str();
  app.add_option("--training_status", options->plan.ranks_file, "As for `tensord top`");
  app.add_option("--from", options->from,
                 "Instead of watching, the lines that `tensord top --json` wrote");
  app.add_option("--before", options->before,
                 "Such lines from before a change of settings: says what it brought");
  app.add_option("--run", options->runs,
                 "EXAMPLES:SECONDS of a run of the same program; three or more tell how its time "
                 "grows");
  app.add_flag("--json", options->json, "One JSON object instead of a table");
}

void Describe(CLI::App& app, CostOptions* options) {
  app.add_option("--table", options->table, "Prices of your own; see --print_table")
      ->check(CLI::ExistingFile);
  app.add_option("--svg", options->svg, "Also draw the plot into this file");
  app.add_flag("--print_table", options->print_table, "Print the table of prices, to edit");
  app.add_flag("--json", options->json, "One JSON object instead of text");
}

absl::StatusOr<std::string> Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char part[8192];
  // Not by iterators: what fails below them, as for a directory, is thrown at us.
  while (file.read(part, sizeof(part)) || file.gcount() > 0) {
    text.append(part, static_cast<size_t>(file.gcount()));
  }
  if (!file.eof()) return absl::NotFoundError(base::Cat("cannot read ", path));
  return text;
}

absl::StatusOr<doctor::Observation> Recorded(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string lines, Contents(path));
  const auto views = doctor::ParseViews(lines);
  if (!views.ok()) return base::WithContext(views.status(), base::Cat(path, ": "));
  return doctor::Observe(*views);
}

doctor::Observation Watch(const AdviseOptions& options) {
  doctor::Watcher watcher(doctor::FilesOfThisMachine(), options.plan, &base::MonotonicClock());
  const absl::Time end = base::MonotonicClock().Now() + absl::Seconds(options.seconds);
  doctor::View view = watcher.Look();
  std::vector<doctor::View> views;
  while (base::MonotonicClock().Now() < end && views.size() < kLooksMax) {
    doctor::Pause(absl::Seconds(options.interval), false);
    view = watcher.Look();
    views.push_back(view);
  }
  for (const std::string* problem : {&view.server_problem, &view.ranks_problem}) {
    if (!problem->empty()) std::fprintf(stderr, "tensord advise: %s\n", problem->c_str());
  }
  return doctor::Observe(views);
}

absl::StatusOr<std::vector<doctor::TimedRun>> Runs(const std::vector<std::string>& texts) {
  std::vector<doctor::TimedRun> runs;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    const auto examples = doctor::ToDouble(std::string_view(text).substr(0, colon));
    const auto seconds = colon == std::string::npos
                             ? std::nullopt
                             : doctor::ToDouble(std::string_view(text).substr(colon + 1));
    if (!examples || !seconds || !(*examples > 0) || !(*seconds > 0) || !std::isfinite(*examples) ||
        !std::isfinite(*seconds)) {
      return absl::InvalidArgumentError(
          base::Cat("--run ", text, " is not EXAMPLES:SECONDS, two finite numbers above 0"));
    }
    runs.push_back({.examples = *examples, .seconds = *seconds});
  }
  return runs;
}

absl::Status RunAdvise(const AdviseOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<doctor::TimedRun> runs, Runs(options.runs));
  doctor::Observation before;
  if (!options.before.empty()) {
    ASSIGN_OR_RETURN(before, Recorded(options.before));
  }
  doctor::Observation seen;
  if (options.from.empty()) {
    seen = Watch(options);
  } else {
    ASSIGN_OR_RETURN(seen, Recorded(options.from));
  }
  doctor::Findings findings = doctor::Decide(seen);
  for (doctor::Findings& more :
       std::vector{doctor::DecideGrowth(runs), doctor::MeasuredGain(before, seen)}) {
    for (doctor::Finding& finding : more) findings.push_back(std::move(finding));
  }
  const bool colour = isatty(STDOUT_FILENO) == 1;
  const std::string text =
      options.json ? doctor::ToJson(findings) : doctor::ToTable(findings, {.colour = colour});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

absl::Status RunCost(const CostOptions& options) {
  if (options.print_table) {
    std::fputs(doctor::PriceTable().c_str(), stdout);
    return absl::OkStatus();
  }
  doctor::Prices prices;
  if (!options.table.empty()) {
    ASSIGN_OR_RETURN(const std::string text, Contents(options.table));
    const auto parsed = doctor::ParsePrices(text);
    if (!parsed.ok()) return base::WithContext(parsed.status(), base::Cat(options.table, ": "));
    prices = *parsed;
  }
  const doctor::Costs costs = doctor::Compare(prices);
  if (!options.svg.empty()) {
    std::ofstream file(options.svg);
    file << doctor::CostSvg(prices, costs);
    file.close();
    if (!file) return absl::UnavailableError(base::Cat("cannot write ", options.svg));
  }
  const std::string text =
      options.json ? doctor::CostJson(prices, costs) : doctor::CostText(prices, costs);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

template <typename Options>
int RunWith(const char* about, const char* name, const Arguments& arguments,
            absl::Status (*run)(const Options&)) {
  CLI::App app(about, name);
  Options options;
  Describe(app, &options);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status status = run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", name, std::string(base::Message(status)).c_str());
  return 1;
}

}  // namespace

int Advise(const Arguments& arguments) {
  if (!arguments.empty() && arguments.front() == "cost") {
    return RunWith<CostOptions>("Compares owning and renting a machine", "tensord advise cost",
                                Arguments(arguments.begin() + 1, arguments.end()), RunCost);
  }
  return RunWith<AdviseOptions>(
      "Watches the machine and says what holds it back and what to change first; "
      "`tensord advise cost` compares owning and renting",
      "tensord advise", arguments, RunAdvise);
}

}  // namespace tensord::cli
