// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "check/gather.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "config/access_rules.h"
#include "config/cpu_budget.h"
#include "config/option_table.h"
#include "config/text_files.h"
#include "config/text_proto.h"
#include "config/tls_files.h"
#include "engine/litert/runtime.h"
#include "engine/model_info.h"
#include "engine/tensorflow/find_runtime.h"
#include "models/local_source.h"
#include "models/version_policy.h"
#include "serve/load_plan.h"
#include "serve/start_check.h"
#include "supervisor/listen.h"
#include "supervisor/process_limits.h"
#include "tensord/session_config.pb.h"

namespace tensord::check {
namespace {

std::string Words(const absl::Status& status) { return std::string(base::Message(status)); }

std::string StateWords(config::OptionState state) {
  switch (state) {
    case config::OptionState::kWorks:
      break;
    case config::OptionState::kNotNeeded:
      return "not needed";
    case config::OptionState::kNoEffect:
      return "no effect";
    case config::OptionState::kRefused:
      return "refused";
  }
  return "works";
}

void GatherListeners(const config::ServerOptions& options, Report* report) {
  const auto check_path = [report](const std::string& path, std::string_view option) {
    if (path.empty()) return;
    const absl::Status status = supervisor::CheckUnixPath(path, option);
    if (!status.ok()) report->errors.push_back(Words(status));
  };
  check_path(options.grpc_socket_path, "--grpc_socket_path");
  check_path(options.admin_socket_path, "--admin_socket_path");
  if (!options.grpc_socket_path.empty()) {
    report->listeners.push_back(base::Cat("gRPC on the UNIX socket ", options.grpc_socket_path));
  }
  if (!options.admin_socket_path.empty()) {
    report->listeners.push_back(
        base::Cat("admin calls on the UNIX socket ", options.admin_socket_path));
  }
  if (options.port == 0 && options.rest_api_port == 0 && options.admin_port == 0) return;
  // Not the UNIX socket: trying would make its file.
  const auto opened = supervisor::Listeners::Open({.grpc_port = options.port,
                                                   .rest_port = options.rest_api_port,
                                                   .admin_port = options.admin_port,
                                                   .admin_address = options.admin_bind_address,
                                                   .bind_address = options.bind_address,
                                                   .listen = false});
  if (opened.ok()) {
    for (const std::string& text : opened->descriptions()) report->listeners.push_back(text);
    return;
  }
  // Perhaps the very server that is to be replaced.
  report->warnings.push_back(base::Cat("at the moment: ", Words(opened.status())));
}

std::string Mebibytes(uint64_t bytes) { return base::Cat(bytes >> 20, " MiB"); }

void GatherProcess(const config::ServerOptions& options, Report* report) {
  const int cpus = config::CpuBudget();
  const uint64_t memory = config::MemoryLimit(options, config::MemoryBudget());
  const auto add = [&](std::string text) { report->process.push_back(std::move(text)); };
  add(base::Cat("CPUs that may be used: ", cpus,
                "; event loops: ", config::LoopCount(options, cpus)));
  add(base::Cat("memory limit of all processes: ", Mebibytes(memory), ", of which ",
                Mebibytes(config::RequestBytesBudget(options, memory)),
                " may be held for requests and answers"));
  const bool users = geteuid() == 0 && options.worker_user_base > 0;
  add(base::Cat(
      "sandbox of workers: ", options.sandbox,
      options.sandbox == "off" ? ""
      : users ? base::Cat("; each under a user of its own, from ", options.worker_user_base, " on")
              : "; under this user, as the server is not started as root"));
  add(base::Cat("after SIGTERM: ", options.drain_lame_duck_ms, " ms not ready, then at most ",
                options.drain_timeout_ms, " ms for what is in flight"));
  const auto runtime =
      engine::FindRuntime(engine::PlacesOfThisProcess(options.tensorflow_library_dir));
  if (runtime.ok()) {
    add(base::Cat("TensorFlow's libraries: ", *runtime));
  } else {
    report->errors.push_back(Words(runtime.status()));
  }
}

// Only asked for where TensorFlow Lite models are wanted; other models are served without it.
void GatherLiteRt(const config::ServerOptions& options, const config::Platforms& platforms,
                  Report* report) {
  const bool wanted = std::ranges::any_of(
      platforms, [](const auto& platform) { return platform.second.prefer_tflite; });
  if (!wanted) return;
  const auto found =
      engine::Find(engine::LiteRtPackage(),
                   engine::PlacesOf(engine::LiteRtPackage(), options.litert_library_dir));
  if (found.ok()) {
    report->process.push_back(base::Cat("LiteRT's library: ", *found));
  } else {
    report->warnings.push_back(Words(found.status()));
  }
}

std::string ListOf(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += base::Cat(text.empty() ? "" : ", ", number);
  return text;
}

std::vector<std::string> BatchingLines(const config::PlatformSettings& platform) {
  std::vector<std::string> lines;
  if (!platform.batching) {
    return {"batching: tensord decides, by what each model gains from it"};
  }
  if (platform.per_model_batching) {
    lines.push_back(base::Cat("batching: by ", engine::kBatchingParametersFile,
                              " of each version; none without it"));
    return lines;
  }
  const config::BatchingParameters& set = *platform.batching;
  const auto add = [&](std::string_view name, const std::optional<int64_t>& value) {
    lines.push_back(base::Cat("batching: ", name, ": ",
                              value ? base::Cat(*value) : std::string("tensord decides")));
  };
  add("max_batch_size", set.max_batch_size);
  add("batch_timeout_micros", set.batch_timeout_micros);
  add("max_enqueued_batches", set.max_enqueued_batches);
  add("num_batch_threads", set.num_batch_threads);
  if (set.enable_large_batch_splitting) {
    lines.emplace_back("batching: larger requests are split");
    add("max_execution_batch_size",
        set.max_execution_batch_size ? set.max_execution_batch_size : set.max_batch_size);
  }
  if (!set.allowed_batch_sizes.empty()) {
    lines.push_back(base::Cat("batching: padded to ", ListOf(set.allowed_batch_sizes), " rows"));
  }
  if (set.pad_variable_length_inputs) {
    lines.emplace_back("batching: inner dims are padded to the batch's largest");
  }
  return lines;
}

std::string PolicyText(const config::VersionPolicy& policy) {
  switch (policy.kind) {
    case config::VersionPolicy::Kind::kLatest:
      return base::Cat("latest(", policy.latest, ")");
    case config::VersionPolicy::Kind::kAll:
      return "all";
    case config::VersionPolicy::Kind::kSpecific:
      break;
  }
  return base::Cat("specific(", ListOf(policy.specific), ")");
}

// The parameters that a version brings along, where these count.
void CheckVersionBatching(const config::PlatformSettings& platform, const std::string& where,
                          const std::string& directory, Report* report) {
  if (!platform.per_model_batching) return;
  const std::string path = base::Cat(directory, "/", engine::kBatchingParametersFile);
  const auto text = config::ReadFile("enable_per_model_batching_parameters", path);
  if (absl::IsNotFound(text.status())) {
    report->warnings.push_back(
        base::Cat(where, " has no ", engine::kBatchingParametersFile, " and will not be batched"));
    return;
  }
  absl::Status status = text.status();
  if (status.ok()) status = config::ParseBatchingParameters(*text, path, nullptr).status();
  if (!status.ok()) report->errors.push_back(base::Cat(where, ": ", Words(status)));
}

void GatherVersions(const models::ModelConfig& model, const std::map<std::string, int64_t>& labels,
                    const config::PlatformSettings& platform, ModelReport* out, Report* report) {
  std::set<int64_t> labelled;
  for (const auto& [label, number] : labels) labelled.insert(number);
  const std::string where = base::Cat("model ", model.name);
  // What lies there now; nobody waits here to see whether more comes.
  models::LocalSource::Options look;
  look.quiet = absl::ZeroDuration();
  models::LocalSource source(std::move(look));
  models::SourceQuery query;
  query.base_path = model.base_path;
  query.policy = model.policy;
  query.also = labelled;
  query.tflite = model.worker.prefer_tflite;
  const auto listing = source.List(query);
  if (!listing.ok()) {
    report->errors.push_back(base::Cat(where, ": ", Words(listing.status())));
    return;
  }
  for (const std::string& text : listing->warnings) report->warnings.push_back(text);
  std::vector<models::Candidate> complete;
  for (const models::FoundVersion& found : listing->versions) {
    if (found.complete) complete.push_back({.number = found.number});
  }
  const std::vector<int64_t> chosen = models::Choose(model.policy, complete, labelled);
  for (const models::FoundVersion& found : listing->versions) {
    const bool loads = std::ranges::find(chosen, found.number) != chosen.end();
    const bool looked_at = found.fingerprint != 0;
    out->versions.push_back({.number = found.number,
                             .directory = found.directory,
                             .bytes = found.bytes,
                             .loads = loads,
                             .looked_at = looked_at,
                             .waits_for = looked_at && !found.complete ? found.reason : ""});
    if (!loads) continue;
    if (!found.doubt.empty()) {
      report->warnings.push_back(base::Cat(where, ", version ", found.number,
                                           " would be tried, and probably fail: ", found.doubt));
    }
    CheckVersionBatching(platform, base::Cat(where, ", version ", found.number), found.directory,
                         report);
  }
  if (chosen.empty() && !models::AsksForNothing(model.policy)) {
    report->errors.push_back(base::Cat(where, " has no complete version below ", model.base_path,
                                       " that its policy, ", out->policy, ", would load"));
  }
  for (const auto& [label, number] : labels) {
    if (std::ranges::find(chosen, number) != chosen.end()) continue;
    report->warnings.push_back(base::Cat(where, ": label \"", label, "\" points to version ",
                                         number, ", which would not be loaded"));
  }
}

// Who may connect, and who may do what: a server that cannot tell does not start.
void CheckSecurity(const config::ServerOptions& options, Report* report) {
  const auto tls = config::LoadTls(options);
  for (const absl::Status& status : {tls.ok() ? config::CheckTls(*tls) : tls.status(),
                                     config::LoadAccessRules(options).status()}) {
    if (!status.ok()) report->errors.push_back(Words(status));
  }
}

}  // namespace

void GatherFlags(const config::ServerOptions& options, Report* report) {
  for (const config::Option& option : config::OptionTable()) {
    if (option.state == config::OptionState::kWorks || config::IsDefault(option, options)) continue;
    report->flags.push_back({.name = std::string(option.name),
                             .value = config::ValueText(option, options),
                             .state = StateWords(option.state),
                             .note = std::string(option.note)});
  }
}

void GatherPlatforms(const config::Platforms& platforms, Report* report) {
  for (const auto& [name, platform] : platforms) {
    PlatformReport& out = report->platforms.emplace_back();
    out.name = name;
    std::string tags;
    for (const std::string& tag : platform.saved_model_tags) {
      tags += base::Cat(tags.empty() ? "" : ",", tag);
    }
    out.lines.push_back(base::Cat("tags: ", tags));
    tensorflow::ConfigProto session;
    if (session.ParseFromString(platform.session_config) && !platform.session_config.empty()) {
      out.lines.push_back(base::Cat("session: ", session.ShortDebugString()));
    }
    if (platform.bfloat16) out.lines.emplace_back("oneDNN may compute in bfloat16");
    for (std::string& line : BatchingLines(platform)) out.lines.push_back(std::move(line));
  }
}

void GatherModels(const std::vector<config::ModelEntry>& entries,
                  const config::Platforms& platforms, Report* report) {
  const std::vector<models::ModelConfig> plans = serve::PlanModels(entries, {}, platforms);
  for (const models::ModelConfig& plan : plans) {
    const auto entry = std::ranges::find(entries, plan.name, &config::ModelEntry::name);
    ModelReport out{.name = plan.name,
                    .base_path = plan.base_path,
                    .platform = plan.platform,
                    .policy = PolicyText(entry->policy),
                    .versions = {}};
    GatherVersions(plan, plan.labels, serve::PlatformOf(platforms, plan.platform), &out, report);
    report->models.push_back(std::move(out));
  }
}

Report Gather(config::Style style, const config::CommandLine& line) {
  Report report;
  config::ServerOptions options = line.options;
  config::Warnings warnings = line.warnings;
  const auto note = [&](const absl::Status& status) {
    if (!status.ok()) report.errors.push_back(Words(status));
    return status.ok();
  };
  GatherFlags(options, &report);
  note(config::CheckOptions(style, &options, &warnings));
  GatherListeners(options, &report);
  GatherProcess(options, &report);
  // Each file on its own: an operator wants to hear of all mistakes at once.
  Uses uses{.rest = options.rest_api_port != 0};
  note(config::LoadMonitoring(options).status());
  CheckSecurity(options, &report);
  note(serve::CheckStart(options));
  const auto settings = config::LoadModelSettings(options);
  note(settings.status());
  const auto platforms = config::LoadPlatforms(options, &warnings);
  if (note(platforms.status())) {
    GatherPlatforms(*platforms, &report);
    GatherLiteRt(options, *platforms, &report);
    const bool named = !options.model_base_path.empty() || !options.model_config_file.empty();
    const auto entries = named ? config::LoadModels(options, *platforms, &warnings)
                               : std::vector<config::ModelEntry>();
    if (note(entries.status())) {
      GatherModels(*entries, *platforms, &report);
      for (const config::ModelEntry& model : *entries) uses.labels |= !model.labels.empty();
      for (const auto& [name, unused] : settings.value_or(serve::SettingsByModel())) {
        if (std::ranges::find(*entries, name, &config::ModelEntry::name) != entries->end())
          continue;
        warnings.push_back(base::Cat("--model_settings_file has settings of model ", name,
                                     ", which is not configured"));
      }
    }
  }
  for (std::string& warning : supervisor::LowLimits(supervisor::OwnLimits(), geteuid() == 0)) {
    warnings.push_back(std::move(warning));
  }
  report.warnings.insert(report.warnings.begin(), warnings.begin(), warnings.end());
  if (style == config::Style::kOriginal) report.differences = DifferencesFor(uses);
  return report;
}

}  // namespace tensord::check
