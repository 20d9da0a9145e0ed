// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/status_macros.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/train_hosts.h"
#include "cli/train_options.h"
#include "cli/train_yield.h"
#include "cli/version.h"
#include "config/cpu_budget.h"
#include "doctor/checks/checks.h"
#include "doctor/machine.h"
#include "obs/log.h"
#include "supervisor/spawn.h"
#include "train/address.h"
#include "train/cgroup.h"
#include "train/environment.h"
#include "train/guard.h"
#include "train/launch.h"
#include "train/limits.h"
#include "train/log_folder.h"
#include "train/machine.h"
#include "train/pinning.h"
#include "train/processes.h"
#include "train/publish.h"
#include "train/schedulers.h"

namespace tensord::cli {
namespace {

constexpr size_t kTokenBytesMax = 4096;

constexpr const char* kDashes = "put the program behind \"--\", as in -- python script.py";

constexpr std::string_view kFooter =
    "\nBehind \"--\" stands the program and its arguments, as in: tensord train --standalone "
    "--nproc-per-node 2 -- python script.py --epochs 3\n"
    "Exit code: 0 when the job ended well; the first failing rank's own, or 128 and the signal "
    "that ended it; 1 when the job could not run; 2 for wrong usage. docs/training.md has more.";

// Where the injected help lies: beside the program, or in the tree that it was built in.
absl::StatusOr<std::string> HelpFolder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const char* relative : {"../share/tensord/python", "../../../python"}) {
    const auto folder = self.parent_path() / relative / "tensord_train" / "inject";
    if (std::filesystem::exists(folder / "sitecustomize.py", error)) {
      return std::filesystem::weakly_canonical(folder, error).string();
    }
  }
  return absl::NotFoundError(
      base::Cat("the Python help is not beside ", self.string(),
                " (share/tensord/python/tensord_train): install it, or give --no-inject"));
}

// Of standard input, byte by byte: what follows is not ours to take.
std::string FirstLineOfInput() {
  std::string line;
  char c = 0;
  while (line.size() < kTokenBytesMax && read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
    line.push_back(c);
  }
  return line;
}

absl::StatusOr<std::string> ReadToken(const TrainOptions& options,
                                      const std::vector<std::string>& environment) {
  const std::string& path = options.token_file;
  if (options.from_ssh) return FirstLineOfInput();
  if (path.empty()) return std::string(train::ValueOf(environment, "TENSORD_TRAIN_TOKEN"));
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token) || token.empty()) {
    return absl::NotFoundError(base::Cat("--token-file ", path, " has no token in its first line"));
  }
  return token;
}

// Fills in where the machines meet and which of them leads.
absl::Status Place(const TrainOptions& options, const std::vector<std::string>& environment,
                   train::Launch* launch) {
  ASSIGN_OR_RETURN(const NodeRange range, ParseNodes(options.nodes));
  launch->policy.nodes_min = range.min;
  launch->policy.nodes_max = range.max;
  launch->node_rank = options.node_rank;
  launch->meeting = options.meeting;
  const auto placed = train::FromScheduler(environment, train::FullHostName());
  if (placed.has_value() && !options.standalone && options.meeting.empty()) {
    if (options.nodes.empty() && placed->nodes > 0) {
      launch->policy.nodes_min = launch->policy.nodes_max = placed->nodes;
    }
    if (launch->policy.nodes_max > 1) {
      launch->meeting = base::Cat(placed->leader, ":", kMeetingPort);
      if (launch->node_rank < 0) launch->node_rank = placed->node_rank;
      obs::Info("{}: machine {} of {}; the leader is {}", placed->scheduler, launch->node_rank,
                launch->policy.nodes_max, placed->leader);
    }
  }
  if (launch->policy.nodes_max == 1) {
    launch->meeting.clear();
    return absl::OkStatus();
  }
  if (launch->meeting.empty()) {
    return absl::InvalidArgumentError(
        base::Cat("--nnodes ", options.nodes,
                  " needs --rdzv HOST:PORT, the first machine's address, the same on all"));
  }
  if (launch->meeting.find(':') == std::string::npos) {
    launch->meeting += base::Cat(":", kMeetingPort);
  }
  std::pair<std::string, int> parts;
  ASSIGN_OR_RETURN(parts, train::SplitAddress(launch->meeting));
  launch->leader =
      launch->node_rank >= 0 ? launch->node_rank == 0 : train::IsOurAddress(parts.first);
  if (launch->leader && launch->address.empty()) launch->address = parts.first;
  launch->agent.interface = train::InterfaceTo(parts.first);
  ASSIGN_OR_RETURN(launch->token, ReadToken(options, environment));
  if (launch->token.empty()) {
    obs::Warn("no --token-file: whoever reaches {} may join this job", launch->meeting);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RanksPerNode(const TrainOptions& options, const train::GpuList& gpus) {
  if (options.ranks == "gpu") {
    if (!gpus.visible.empty()) return static_cast<int>(gpus.visible.size());
    return absl::FailedPreconditionError(
        "--nproc-per-node gpu: the driver shows no GPU here; give a number");
  }
  int ranks = 0;
  const char* const end = options.ranks.data() + options.ranks.size();
  const auto parsed = std::from_chars(options.ranks.data(), end, ranks);
  if (parsed.ptr != end || ranks < 1 || ranks > train::limits::kRanksPerNodeMax) {
    return absl::InvalidArgumentError(base::Cat("--nproc-per-node is \"gpu\" or 1 to ",
                                                train::limits::kRanksPerNodeMax, ", not \"",
                                                options.ranks, "\""));
  }
  return ranks;
}

// Options that make sense only together.
absl::Status CheckTogether(const TrainOptions& options) {
  if (options.publish.empty() != options.export_dir.empty()) {
    return absl::InvalidArgumentError("--publish and --export-dir go together");
  }
  if (options.tls_cert.empty() != options.tls_key.empty() ||
      options.tls_cert.empty() != options.tls_ca.empty()) {
    return absl::InvalidArgumentError("--tls-cert, --tls-key and --tls-ca go together");
  }
  if (!options.yield_to.empty()) RETURN_IF_ERROR(train::SplitAddress(options.yield_to).status());
  if (options.standalone && (!options.nodes.empty() || !options.meeting.empty())) {
    return absl::InvalidArgumentError("--standalone is one machine: leave --nnodes and --rdzv out");
  }
  if (options.isolate && !options.yield_to.empty()) {
    return absl::InvalidArgumentError("--isolate hides the server of --yield-to");
  }
  if (options.isolate && !options.standalone) {
    return absl::InvalidArgumentError("--isolate is for one machine: give --standalone as well");
  }
  return absl::OkStatus();
}

// Ours, without a cluster that somebody else described: ranks would wait for it.
std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment = supervisor::Environment();
  const size_t foreign = std::erase_if(
      environment, [](const std::string& variable) { return variable.starts_with("TF_CONFIG="); });
  if (foreign > 0) obs::Warn("TF_CONFIG is set here; ranks get one of this job, or none");
  return environment;
}

// Which CPUs ranks run on, and whose memory they prefer.
void PlaceOnCpus(const TrainOptions& options, const train::GpuList& gpus, train::Launch* launch) {
  if (options.no_pin) return;
  train::AgentSetup& agent = launch->agent;
  train::Pinning pinning = train::PlaceRanks(
      train::ReadCpuMap(""),
      {.mode = launch->policy.mode, .ranks = agent.ranks, .gpus = gpus.visible, .near = gpus.cpus});
  if (!pinning.why_not.empty()) obs::Info("ranks are not pinned to CPUs: {}", pinning.why_not);
  const auto wants_node = [](const train::Place& place) { return place.memory_node >= 0; };
  const auto first = std::find_if(pinning.places.begin(), pinning.places.end(), wants_node);
  if (first != pinning.places.end()) {
    const absl::Status status = train::MayPrefer(first->memory_node);
    if (!status.ok()) {
      obs::Warn("ranks take memory from any NUMA node: {}", std::string(base::Message(status)));
      for (train::Place& place : pinning.places) place.memory_node = -1;
    }
  }
  agent.places = std::move(pinning.places);
}

// Whoever gives a limit wants it kept; else a job that nobody saw make a step may be silent.
// Without the help no step is ever seen, so that its silence is all there is to look at.
train::WatchLimits WatchOf(const TrainOptions& options) {
  train::WatchLimits watch = {.start = absl::Seconds(options.start_timeout),
                              .step = absl::Seconds(options.hang_timeout),
                              .stopped = absl::Seconds(options.stopped_timeout)};
  if (options.start_timeout_given) return watch;
  watch.without_steps = options.hang_timeout_given && options.hang_timeout > 0;
  if (watch.without_steps) {
    watch.start = options.no_inject ? watch.step : std::max(watch.start, watch.step);
  }
  return watch;
}

absl::StatusOr<train::Launch> Settle(const TrainOptions& options, const Arguments& program) {
  RETURN_IF_ERROR(CheckTogether(options));
  if (!options.publish.empty()) {
    RETURN_IF_ERROR(train::CheckPlaces(options.export_dir, options.publish));
  }
  if (options.isolate && !options.print_env) RETURN_IF_ERROR(train::Isolate());
  const std::vector<std::string> environment = OwnEnvironment();
  train::Launch launch;
  const train::GpuList gpus = train::FindGpus(environment, "");
  launch.agent.program = program;
  if (program[0].ends_with(".py"))
    launch.agent.program.insert(launch.agent.program.begin(), "python3");
  launch.agent.environment = environment;
  launch.agent.gpus = gpus.visible;
  launch.agent.cpus = config::CpuBudget();
  ASSIGN_OR_RETURN(launch.agent.ranks, RanksPerNode(options, gpus));
  ASSIGN_OR_RETURN(launch.policy.mode, train::ParseMode(options.mode));
  if (launch.policy.mode == train::Mode::kMirrored && launch.agent.ranks != 1) {
    return absl::InvalidArgumentError(
        "--mode mirrored is one process that uses all GPUs: leave --nproc-per-node at 1");
  }
  PlaceOnCpus(options, gpus, &launch);
  launch.agent.watch = WatchOf(options);
  launch.agent.help.inject = !options.no_inject;
  if (!options.no_inject) {
    ASSIGN_OR_RETURN(launch.agent.help.folder, HelpFolder());
  }
  launch.agent.help.register_ms = static_cast<int64_t>(options.start_timeout * 1000);
  launch.agent.help.heartbeat_ms = static_cast<int64_t>(options.heartbeat * 1000);
  launch.agent.checkpoint_dir = options.checkpoint_dir;
  train::Policy& policy = launch.policy;
  policy.parameter_servers = policy.mode == train::Mode::kParameterServer ? options.servers : 0;
  policy.restarts_max = options.max_restarts;
  policy.restart_on_any = options.restart_on == "any";
  policy.success_on_chief = options.success == "chief";
  policy.check_only = options.check;
  policy.run_id = options.run_id.empty() ? NewRunId() : options.run_id;
  RETURN_IF_ERROR(train::CheckRunId(policy.run_id));
  policy.grace = absl::Seconds(options.grace);
  policy.join_wait = absl::Seconds(options.join_timeout);
  policy.healthy_after = absl::Seconds(options.healthy_after);
  launch.agent.log_dir = options.log_dir;
  if (launch.agent.log_dir.empty()) {
    std::error_code error;
    launch.agent.log_dir = base::Cat(std::filesystem::temp_directory_path(error).string(),
                                     "/tensord-train-", policy.run_id);
  }
  launch.address = options.address;
  launch.secure = {
      .certificate = options.tls_cert, .key = options.tls_key, .authority = options.tls_ca};
  launch.yield = YieldOf(options);
  launch.watch_input = options.from_ssh;
  RETURN_IF_ERROR(Place(options, environment, &launch));
  if (policy.nodes_max > 1 || options.check || !options.checkpoint_dir.empty()) {
    launch.facts = train::FindFacts(launch.agent.program, environment, gpus, launch.agent.cpus,
                                    options.checkpoint_dir, policy.run_id);
  } else {
    launch.facts.host = train::HostName();
  }
  return launch;
}

// What each rank of this machine would get, as if it were the only one.
int PrintEnvironment(const train::Launch& launch) {
  const train::AgentSetup& agent = launch.agent;
  const auto tasks =
      train::TasksOf(launch.policy.mode, agent.ranks, launch.policy.parameter_servers);
  if (!tasks.ok()) {
    std::fprintf(stderr, "tensord train: %s\n", std::string(base::Message(tasks.status())).c_str());
    return 2;
  }
  std::vector<std::string> addresses;
  addresses.reserve(static_cast<size_t>(agent.ranks));
  for (int i = 0; i < agent.ranks; ++i) addresses.push_back(base::Cat("127.0.0.1:<port ", i, ">"));
  for (int i = 0; i < agent.ranks; ++i) {
    const train::TaskId& task = (*tasks)[static_cast<size_t>(i)];
    const train::Place place =
        agent.places.empty() ? train::Place() : agent.places[static_cast<size_t>(i)];
    const train::Seat seat{.rank = i,
                           .ranks = agent.ranks,
                           .local_rank = i,
                           .local_ranks = agent.ranks,
                           .run_id = launch.policy.run_id,
                           .task = task,
                           .mode = launch.policy.mode,
                           .tf_config = train::TfConfig(launch.policy.mode, *tasks, addresses, i),
                           .gpus = train::GpusOfRank(agent.gpus, i, agent.ranks),
                           .cpus = agent.cpus,
                           .pinned_cpus = static_cast<int>(place.cpus.size()),
                           .interface = agent.interface};
    for (const std::string& variable : train::Merge(
             agent.environment, train::RankVariables(seat, agent.help, agent.environment))) {
      std::printf("[%s] %s\n", train::TaskName(task).c_str(), train::Masked(variable).c_str());
    }
    if (!place.cpus.empty()) {
      std::printf("[%s] (runs on CPUs %s)\n", train::TaskName(task).c_str(),
                  train::CpuListText(place.cpus).c_str());
    }
    if (place.memory_node >= 0) {
      std::printf("[%s] (prefers memory of NUMA node %d)\n", train::TaskName(task).c_str(),
                  place.memory_node);
    }
  }
  return 0;
}

// TensorFlow binds 0.0.0.0 whatever TF_CONFIG says.
void WarnOfOpenPorts(const TrainOptions& options, const train::Launch& launch) {
  const train::Policy& policy = launch.policy;
  const bool serves =
      policy.mode == train::Mode::kMultiWorker || policy.mode == train::Mode::kParameterServer;
  const bool one_machine = policy.nodes_max == 1;
  if (options.isolate || options.check || !serves || (one_machine && launch.agent.ranks < 2))
    return;
  obs::Warn(
      "TensorFlow's servers listen on all interfaces and ask nobody who they are: whoever reaches "
      "the ranks' ports may read and run what they like. {}",
      one_machine ? "--isolate puts the ranks into a network of their own (needs root); else use a "
                    "firewall"
                  : "Use a network of your own or a firewall");
}

// Also as torchrun's users write them: --nproc_per_node.
Arguments WithDashes(Arguments own) {
  for (std::string& word : own) {
    if (!word.starts_with("--")) continue;
    const size_t end = std::min(word.find('='), word.size());
    std::replace(word.begin(), word.begin() + static_cast<ptrdiff_t>(end), '_', '-');
  }
  return own;
}

int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "tensord train: %s\n", std::string(base::Message(status)).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

// The server would wait for ever for what is missing: a shard that is shorter than its index says,
// too.
absl::Status CheckExport(const std::string& folder) {
  for (const doctor::Finding& finding :
       doctor::CheckModel(doctor::FilesOfThisMachine(), {.directory = folder})) {
    if (finding.id == "model.complete" && finding.level == doctor::Level::kError) {
      return absl::FailedPreconditionError(base::Cat("publish: ", finding.seen));
    }
  }
  return absl::OkStatus();
}

int PublishModel(const TrainOptions& options, const train::ExportMark& before) {
  if (before != train::ExportMark() && before == train::MarkOf(options.export_dir)) {
    obs::Error("publish: {} is as it was before this run: the script exported nothing there",
               options.export_dir);
    return 1;
  }
  if (const absl::Status status = CheckExport(options.export_dir); !status.ok()) {
    obs::Error("{}", std::string(base::Message(status)));
    return 1;
  }
  const auto path = train::Publish(options.export_dir, options.publish);
  if (!path.ok()) {
    obs::Error("{}", std::string(base::Message(path.status())));
    return 1;
  }
  obs::Info("published {}", *path);
  return 0;
}

}  // namespace

int Train(const Arguments& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  CLI::App app("Start, watch and restart the processes of a TensorFlow training job",
               "tensord train");
  app.footer(std::string(kFooter));
  app.set_version_flag("--version", OwnVersion());
  TrainOptions options;
  Describe(app, &options);
  const Arguments own = WithDashes(Arguments(arguments.begin(), dashes));
  try {
    app.parse(Arguments(own.rbegin(), own.rend()));
  } catch (const CLI::ExtrasError& error) {
    app.exit(error);
    if (dashes == arguments.end()) std::fprintf(stderr, "%s\n", kDashes);
    return 2;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Arguments program(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
  options.start_timeout_given = app.count("--start-timeout") > 0;
  options.hang_timeout_given = app.count("--hang-timeout") > 0;
  if (program.empty()) {
    std::fprintf(stderr, "tensord train: nothing to run: %s\n", kDashes);
    return 2;
  }
  obs::StartLog({.process = "train"});
  if (!options.hosts.empty()) {
    const auto setup = SettleHosts(options, own, program);
    if (!setup.ok()) return Refuse(setup.status());
    return train::Guarded([&] { return train::RunOverSsh(*setup, OwnVersion()); });
  }
  absl::StatusOr<train::Launch> launch = Settle(options, program);
  if (!launch.ok()) return Refuse(launch.status());
  if (options.print_env) return PrintEnvironment(*launch);
  if (options.log_dir.empty() && !options.check) {
    const absl::Status made = train::MakeOwnFolder(launch->agent.log_dir);
    if (!made.ok()) return Refuse(made);
  }
  obs::Info("run {}: logs are in {}", launch->policy.run_id, launch->agent.log_dir);
  WarnOfOpenPorts(options, *launch);
  launch->agent.group =
      train::MakeGroup(base::Cat("tensord-train-", launch->policy.run_id, "-", getpid()));
  const train::ExportMark before = train::MarkOf(options.export_dir);
  const int code = train::Guarded([&] { return train::Run(*launch); });
  train::RemoveGroup(launch->agent.group);
  train::RemoveMark(options.checkpoint_dir, launch->facts);
  return code == 0 && !options.publish.empty() && launch->leader ? PublishModel(options, before)
                                                                 : code;
}

}  // namespace tensord::cli
