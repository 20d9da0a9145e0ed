// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/status_macros.h"
#include "base/text.h"
#include "bench/ask.h"
#include "bench/prepare.h"
#include "bench/report.h"
#include "bench/secure.h"
#include "bench/series.h"
#include "cli/bench_options.h"
#include "cli/commands.h"
#include "cli/version.h"

namespace tensord::cli {
namespace {

constexpr int kRestConnections = 256;  // Of an open loop: each has one request out.
constexpr int kOverloadInFlight = 64;
constexpr double kOverloadDeadlineMs = 100;

// The parts of comma lists, however often they were given.
std::vector<std::string> Split(const std::vector<std::string>& lists) {
  std::vector<std::string> parts;
  for (std::string_view list : lists) {
    while (!list.empty()) {
      const std::string_view part = list.substr(0, list.find(','));
      if (!part.empty()) parts.emplace_back(part);
      list.remove_prefix(std::min(part.size() + 1, list.size()));
    }
  }
  return parts;
}

template <typename Number>
absl::StatusOr<std::vector<Number>> Numbers(std::string_view option,
                                            const std::vector<std::string>& lists) {
  std::vector<Number> numbers;
  for (const std::string& part : Split(lists)) {
    Number number{};
    const auto end = std::from_chars(part.data(), part.data() + part.size(), number);
    if (end.ec != std::errc() || end.ptr != part.data() + part.size() || !(number > 0) ||
        number > Number{10'000'000}) {
      return absl::InvalidArgumentError(base::Cat(
          "--", option, " takes numbers above 0 and up to ten million, not \"", part, "\""));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::Status CheckTogether(const BenchOptions& options) {
  // Read again where they are used; a wrong one is said before the server is asked for anything.
  RETURN_IF_ERROR(Numbers<int>("server_pid", options.server_pid).status());
  RETURN_IF_ERROR(Numbers<double>("rates", options.rates).status());
  RETURN_IF_ERROR(Numbers<double>("factors", options.factors).status());
  const int ways =
      (options.rate > 0 ? 1 : 0) + (options.rates.empty() ? 0 : 1) + (options.overload ? 1 : 0);
  std::string_view wrong;
  if (ways > 1) wrong = "--rate, --rates and --overload exclude each other";
  if (options.one_shot && !options.rest) wrong = "--one_shot needs --rest";
  if (options.overload && options.requests > 0) {
    wrong = "--overload measures for --seconds, not --requests";
  }
  if (options.rest && options.connections > 0 && options.in_flight > options.connections) {
    wrong = "REST has one request out a connection: give --connections as many as --in_flight";
  }
  if (!options.request.empty() || !options.mix.empty()) {
    if (!options.model.empty() || !options.input.empty() || !options.body_file.empty() ||
        !options.path.empty() || !options.signature.empty()) {
      wrong =
          "--model, --signature, --input, --body_file and --path are for one kind of request: with "
          "--request or --mix write them into its text";
    }
  }
  if (!options.body_file.empty() && options.model.size() > 1) {
    wrong = "--body_file is for one model: use --request";
  }
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(std::string(wrong));
}

absl::StatusOr<std::vector<bench::MixEntry>> MixEntries(const BenchOptions& options) {
  std::vector<bench::MixEntry> entries;
  for (const std::string& text : options.request) {
    ASSIGN_OR_RETURN(bench::MixEntry entry, bench::ParseMixEntry(text));
    entries.push_back(std::move(entry));
  }
  if (!options.mix.empty()) {
    std::ifstream file(options.mix);
    if (!file) return absl::NotFoundError(base::Cat("cannot read --mix ", options.mix));
    std::ostringstream text;
    text << file.rdbuf();
    absl::StatusOr<std::vector<bench::MixEntry>> more = bench::ParseMixText(text.str());
    if (!more.ok()) return base::WithContext(more.status(), base::Cat(options.mix, ", "));
    entries.insert(entries.end(), more->begin(), more->end());
  }
  if (!entries.empty()) return entries;
  std::vector<std::string> models = Split(options.model);
  if (models.empty()) models = {"default"};
  const std::vector<double> weights = bench::ZipfWeights(models.size(), options.zipf);
  for (size_t i = 0; i < models.size(); ++i) {
    entries.push_back({.name = models[i],
                       .weight = weights[i],
                       .file = options.body_file,
                       .signature = options.signature,
                       .inputs = options.input,
                       .path = options.path});
  }
  return entries;
}

absl::StatusOr<bench::MixSettings> SettingsOf(const BenchOptions& options) {
  bench::MixSettings settings{.rest = options.rest,
                              .oip = options.oip,
                              .one_shot = options.one_shot,
                              .rows = options.rows,
                              .criticality = options.criticality};
  ASSIGN_OR_RETURN(settings.entries, MixEntries(options));
  const double deadline =
      options.overload && options.deadline_ms == 0 ? kOverloadDeadlineMs : options.deadline_ms;
  if (deadline > 0) settings.deadline = absl::Milliseconds(deadline);
  for (const std::string& text : options.header) {
    ASSIGN_OR_RETURN(auto header, bench::ParseHeader(text));
    settings.headers.push_back(std::move(header));
  }
  return settings;
}

// How many connections and requests at a time, where the user left it to us.
void SetSizes(const BenchOptions& options, bench::LoadPlan* plan) {
  const bool open = plan->pacing != bench::Pacing::kClosed;
  const auto connections = static_cast<int>(options.connections);
  const int in_flight = static_cast<int>(options.in_flight);
  const int wanted = in_flight > 0 ? in_flight : options.overload ? kOverloadInFlight : 1;
  plan->connections = connections;
  if (connections == 0) plan->connections = !options.rest ? 1 : open ? kRestConnections : wanted;
  plan->threads = std::min(static_cast<int>(options.threads), plan->connections);
  if (connections == 0 && !options.rest) {
    plan->threads = static_cast<int>(options.threads);
    plan->connections = plan->threads;
  }
  plan->in_flight =
      open ? static_cast<int>(options.in_flight_max) : std::max(wanted, plan->connections);
}

absl::StatusOr<bench::SeriesPlan> PlanOf(const BenchOptions& options, const bench::Address& address,
                                         const bench::Mix& mix) {
  bench::LoadPlan load{.address = &address, .mix = &mix, .rest = options.rest};
  load.one_shot = options.one_shot;
  load.rate = options.rate;
  load.duration = absl::Seconds(options.seconds);
  load.warm_up = absl::Seconds(options.warm_up_seconds);
  if (options.requests > 0) load.requests = static_cast<uint64_t>(options.requests);
  load.seed = static_cast<uint64_t>(options.seed);
  ASSIGN_OR_RETURN(load.server_pids, Numbers<int>("server_pid", options.server_pid));

  bench::SeriesPlan plan{.load = load, .closed = load};
  const bool open = options.rate > 0 || !options.rates.empty() || options.overload;
  if (open) {
    plan.load.pacing =
        options.pacing == "poisson" ? bench::Pacing::kPoisson : bench::Pacing::kConstant;
  }
  plan.closed.deadlines = false;
  SetSizes(options, &plan.load);
  SetSizes(options, &plan.closed);
  if (!options.rates.empty()) {
    plan.mode = bench::SeriesMode::kRates;
    ASSIGN_OR_RETURN(plan.rates, Numbers<double>("rates", options.rates));
  }
  if (options.overload) {
    plan.mode = bench::SeriesMode::kOverload;
    ASSIGN_OR_RETURN(plan.factors, Numbers<double>("factors", options.factors));
  }
  return plan;
}

void ShowProgress(const std::string& title, const bench::Progress& progress) {
  std::fprintf(stderr, "\r\033[K%s", bench::ProgressLine(title, progress).c_str());
}

absl::Status Write(const BenchOptions& options, const bench::ReportFacts& facts,
                   const bench::Series& series) {
  if (options.json != "-") std::fputs(bench::TextReport(facts, series).c_str(), stdout);
  if (options.json.empty()) return absl::OkStatus();
  const std::string json = bench::JsonReport(facts, series);
  if (options.json == "-") {
    std::fputs(json.c_str(), stdout);
    return absl::OkStatus();
  }
  std::ofstream file(options.json, std::ios::trunc);
  file << json;
  file.close();
  if (!file) return absl::NotFoundError(base::Cat("cannot write --json ", options.json));
  return absl::OkStatus();
}

// What the exit code says, in a sentence.
absl::Status Verdict(const BenchOptions& options, const bench::Series& series) {
  const std::string& ended = series.points.back().result.ended_early;
  if (!ended.empty() && ended != "interrupted") return absl::UnavailableError(ended);
  double limit = options.max_failed_percent;
  if (limit < 0) limit = options.overload ? 100 : 0;
  const auto failed = static_cast<double>(series.failed());
  const double all = static_cast<double>(series.answered()) + failed;
  if (failed > limit / 100 * all) {
    return absl::AbortedError(base::Cat(series.failed(), " of ",
                                        series.answered() + series.failed(),
                                        " requests failed; --max_failed_percent is ", limit));
  }
  if (all == 0) return absl::AbortedError("nothing was answered in the time that was measured");
  return absl::OkStatus();
}

std::string Joined(const Arguments& arguments) {
  std::string text = "tensord bench";
  for (const std::string& argument : arguments) text += base::Cat(" ", argument);
  return text;
}

absl::StatusOr<bench::Address> AddressOf(const BenchOptions& options) {
  ASSIGN_OR_RETURN(bench::Address address,
                   bench::Resolve(options.host, static_cast<int>(options.port)));
  if (!options.tls && options.ca.empty()) return address;
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes with a call that a closed connection could end.
  ASSIGN_OR_RETURN(address.tls, bench::TlsClient::Create(options.host, options.ca,
                                                         options.rest ? "http/1.1" : "h2"));
  return address;
}

absl::Status RunBench(const BenchOptions& options, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const bench::MixSettings settings, SettingsOf(options));
  ASSIGN_OR_RETURN(const bench::Address address, AddressOf(options));
  ASSIGN_OR_RETURN(const bench::Mix mix, bench::MakeMix(address, settings));
  ASSIGN_OR_RETURN(const bench::SeriesPlan plan, PlanOf(options, address, mix));
  uint64_t tried = 0;
  if (options.try_first) RETURN_IF_ERROR(bench::TryEach(address, options.rest, mix, &tried));

  const bool terminal = isatty(STDERR_FILENO) != 0;
  ASSIGN_OR_RETURN(bench::Series series,
                   bench::RunSeries(plan, terminal ? ShowProgress : bench::SeriesProgress()));
  if (terminal) std::fputs("\r\033[K", stderr);
  series.points.front().result.sent += tried;
  const bench::ReportFacts facts{.server = address.name,
                                 .version = OwnVersion(),
                                 .command = Joined(arguments),
                                 .machine = bench::ThisMachine()};
  RETURN_IF_ERROR(Write(options, facts, series));
  return Verdict(options, series);
}

int Fail(const absl::Status& status, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "tensord bench: %s\n", std::string(base::Message(status)).c_str());
  return code;
}

}  // namespace

int Bench(const Arguments& arguments) {
  constexpr int kWrongUsage = 2;
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    std::fputs(BenchHelp().c_str(), stdout);
    return 0;
  }
  const absl::StatusOr<BenchOptions> options = ParseBenchOptions(arguments);
  if (!options.ok()) return Fail(options.status(), kWrongUsage);
  const absl::Status together = CheckTogether(*options);
  if (!together.ok()) return Fail(together, kWrongUsage);
  const absl::Status status = RunBench(*options, arguments);
  return status.ok() ? 0 : Fail(status, 1);
}

}  // namespace tensord::cli
