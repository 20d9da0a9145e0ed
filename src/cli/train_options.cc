// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/train_options.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "base/text.h"
#include "cli/between.h"
#include "train/limits.h"

namespace tensord::cli {
namespace {

constexpr double kSecondsMax = 7 * 86'400;

// What scripts give when a variable of theirs is not set.
std::string NotEmpty(const std::string& text) { return text.empty() ? "it is empty" : ""; }

void DescribePlaces(CLI::App& app, TrainOptions* options) {
  app.add_flag("--standalone", options->standalone, "One machine; needs no meeting point");
  app.add_option("--hosts", options->hosts,
                 "Start on all of these by SSH, from here: a,b or node[01-04]; the first leads. "
                 "tensord, the script and this folder are at the same place on each")
      ->check(NotEmpty);
  app.add_option("--ssh-config", options->ssh_config, "File for ssh -F, with --hosts");
  app.add_flag("--from-ssh", options->from_ssh)->group("");  // What --hosts starts on a machine.
  app.add_option("--nnodes", options->nodes,
                 "Machines, as 4, or 2:4 for two at least (the job goes on with fewer)")
      ->check(NotEmpty);
  app.add_option("--nproc-per-node", options->ranks, "Processes a machine, or \"gpu\": one a GPU")
      ->capture_default_str();
  app.add_option("--mode", options->mode,
                 "mwms: workers for MultiWorkerMirroredStrategy. ps: the first process is the "
                 "chief, the last --ps are parameter servers. mirrored: one process, all GPUs. "
                 "local: processes that do not know each other")
      ->capture_default_str();
  app.add_option("--ps", options->servers, "Parameter servers, with --mode ps")
      ->check(CLI::Range(1, train::limits::kRanksPerNodeMax))
      ->capture_default_str();
  app.add_option("--rdzv,--rdzv-endpoint", options->meeting,
                 "HOST:PORT where all machines meet: the leader's; the port is 29400 if not given")
      ->check(NotEmpty);
  app.add_option("--node-rank", options->node_rank,
                 "This machine's place, 0 leads; else who owns the address of --rdzv leads")
      ->check(CLI::Range(0, train::limits::kNodesMax - 1));
  app.add_option("--address", options->address,
                 "Address of this machine for the others; found out if not given")
      ->check(NotEmpty);
  app.add_option("--token-file", options->token_file,
                 "File whose first line all machines share; else TENSORD_TRAIN_TOKEN")
      ->check(NotEmpty);
  app.add_option("--tls-cert", options->tls_cert,
                 "TLS between the agents, with --tls-key and --tls-ca: this machine's certificate "
                 "(PEM); the leader's is for the host of --rdzv");
  app.add_option("--tls-key", options->tls_key, "Its key");
  app.add_option("--tls-ca", options->tls_ca, "Whose certificates count");
  app.add_option("--run-id", options->run_id, "Name of the run, for RUN_ID and the logs")
      ->check(NotEmpty);
}

void DescribeFailures(CLI::App& app, TrainOptions* options) {
  app.add_option("--max-restarts", options->max_restarts,
                 "Times that a failed job is started again, all ranks together. Exits 42 and 143 "
                 "ask for it and do not count")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--restart-on", options->restart_on,
                 "any failure, or only signals and exit codes from 128 on")
      ->check(CLI::IsMember({"any", "signals"}))
      ->capture_default_str();
  app.add_option("--success", options->success,
                 "When the job is done: all ended well, or the chief")
      ->check(CLI::IsMember({"all", "chief"}))
      ->capture_default_str();
  const auto seconds = [&](const char* name, double* value, const char* help) {
    app.add_option(name, *value, help)
        ->check(Between(0, kSecondsMax, "a number of seconds"))
        ->capture_default_str();
  };
  seconds("--grace", &options->grace, "Seconds between SIGTERM and SIGKILL");
  seconds("--join-timeout", &options->join_timeout, "Seconds to wait for the other machines");
  seconds("--start-timeout", &options->start_timeout,
          "Seconds to a rank's first step, and for TensorFlow's ranks to find each other");
  seconds("--hang-timeout", &options->hang_timeout,
          "Seconds without a step or a line of output, then the job hangs; 0: never. Where no step "
          "was ever seen, silence ends the job only if this or --start-timeout is given");
  seconds("--stopped-timeout", &options->stopped_timeout,
          "Seconds that a rank may stay stopped (SIGSTOP)");
  seconds("--heartbeat", &options->heartbeat,
          "Seconds after which TensorFlow calls a silent rank dead; too few kill busy ones");
  seconds("--healthy-after", &options->healthy_after,
          "Seconds of running after which earlier restarts no longer count");
}

}  // namespace

void Describe(CLI::App& app, TrainOptions* options) {
  DescribePlaces(app, options);
  DescribeFailures(app, options);
  app.add_option("--log-dir", options->log_dir,
                 "Folder for one log file a rank and start; a new one in TMPDIR if not given")
      ->check(NotEmpty);
  app.add_option("--checkpoint-dir", options->checkpoint_dir,
                 "Folder that all machines must share and may write; checked before the start")
      ->check(NotEmpty);
  app.add_option("--export-dir", options->export_dir,
                 "Folder where the script leaves its SavedModel, for --publish")
      ->check(NotEmpty);
  app.add_option("--publish", options->publish,
                 "A server's folder of versions: when the job ended well, the SavedModel becomes "
                 "its next version")
      ->check(NotEmpty);
  app.add_option("--yield-to", options->yield_to,
                 "HOST:PORT (REST) of a tensord server on this machine: while it is behind, ranks "
                 "weigh little, where their control group can, or run a quarter of the time")
      ->check(NotEmpty);
  app.add_option("--yield-queue", options->yield_queue,
                 "It is behind when more calls than this wait for a worker")
      ->check(Between(0, 1e9))
      ->capture_default_str();
  app.add_option("--yield-p99-ms", options->yield_p99_ms,
                 "Or when the slowest percent of some model's requests takes longer; 0: not looked "
                 "at")
      ->check(Between(0, 1e9))
      ->capture_default_str();
  app.add_flag("--isolate", options->isolate,
               "One machine only: ranks reach each other and nothing else, and nobody reaches them "
               "(a network namespace; needs root)");
  app.add_flag("--no-pin", options->no_pin,
               "Leave it to the scheduler which CPUs and whose memory a rank uses");
  app.add_flag("--no-inject", options->no_inject,
               "Leave the Python help out: no bounded waits, no Keras 3 fit over machines, no "
               "stacks, no steps");
  app.add_flag("--check", options->check, "Meet and check all machines, start nothing");
  app.add_flag("--print-env", options->print_env, "Print what each rank would get, start nothing");
}

absl::StatusOr<NodeRange> ParseNodes(std::string_view text) {
  NodeRange range;
  if (text.empty()) return range;
  const size_t colon = std::min(text.find(':'), text.size());
  const auto number = [](std::string_view digits, int* value) {
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
    return end.ec == std::errc() && end.ptr == digits.data() + digits.size() && *value >= 1 &&
           *value <= train::limits::kNodesMax;
  };
  bool good = number(text.substr(0, colon), &range.min);
  range.max = range.min;
  if (good && colon < text.size()) good = number(text.substr(colon + 1), &range.max);
  if (good && range.max >= range.min) return range;
  return absl::InvalidArgumentError(base::Cat("--nnodes is a number or MIN:MAX, 1 to ",
                                              train::limits::kNodesMax, ", not \"", text, "\""));
}

}  // namespace tensord::cli
