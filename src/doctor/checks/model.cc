// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/text.h"
#include "base/unique_fd.h"
#include "config/cpu_budget.h"
#include "doctor/checks/checks.h"
#include "doctor/graph_ops.h"
#include "doctor/words.h"
#include "engine/tensorflow/missing_op.h"
#include "models/local_source.h"
#include "models/version_files.h"
#include "sched/queue_options.h"

namespace tensord::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kGraphBytesMax = 2ull << 30;  // Protobuf's own limit.
constexpr int kLoadFactor = 3;  // Graph, restored weights and their copies while it loads.

// The version that would be served: the directory itself, or its highest numbered one.
std::optional<fs::path> NewestVersion(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / "saved_model.pb", error)) return directory;
  std::optional<std::pair<int64_t, fs::path>> newest;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    int64_t number = 0;
    if (!models::VersionNumber(at->path().filename().string(), &number)) continue;
    if (!newest.has_value() || number > newest->first) newest.emplace(number, at->path());
  }
  if (!newest.has_value()) return std::nullopt;
  return newest->second;
}

Finding Completeness(const models::FilesSeen& files, const fs::path& version) {
  const std::string missing = files.missing.empty() ? files.doubt : files.missing;
  if (missing.empty()) {
    return {.id = "model.complete", .seen = base::Cat(version.string(), ": all files are there")};
  }
  return {.id = "model.complete",
          .level = Level::kError,
          .seen = base::Cat(version.string(), ": ", missing),
          .why = "the server waits for the rest and serves the version before",
          .action = "copy the directory again, whole, under another name, then rename it"};
}

Finding Size(const Machine& machine, const models::FilesSeen& files) {
  const uint64_t memory = static_cast<uint64_t>(
      std::max<int64_t>(0, NumberOf(machine.ReadOr("/proc/meminfo"), "MemTotal").value_or(0)));
  const auto limit = config::CgroupBytes(
      {.proc = machine.root + "/proc", .cgroup = machine.root + "/sys/fs/cgroup"});
  const uint64_t usable = std::min(memory, limit.value_or(memory));
  Finding finding{.id = "model.size", .seen = base::Cat(Bytes(files.bytes), " of files")};
  if (usable > 0 && files.bytes > usable / kLoadFactor) {
    finding.level = files.bytes > usable ? Level::kError : Level::kWarning;
    finding.seen += base::Cat(", of ", Bytes(usable), " of memory");
    finding.why =
        "while it loads it takes two to three times its size, and once more while a new "
        "version takes over";
    finding.action = "give it more memory, or store the weights in fewer bits";
  }
  return finding;
}

std::string Names(const std::vector<tensor::Endpoint>& endpoints) {
  std::vector<std::string> names;
  names.reserve(endpoints.size());
  for (const tensor::Endpoint& endpoint : endpoints) names.push_back(endpoint.name);
  return Join(names, ", ");
}

std::string BatchWords(const GraphFacts& facts, const tensor::Signature& signature) {
  if (!facts.stateful.empty()) return "not batched: its runs keep state";
  switch (sched::RowsOf(signature).open) {
    case sched::SignatureRows::Open::kYes:
      return "will be batched";
    case sched::SignatureRows::Open::kMaybe:
      return "batched only with --enable_batching: some shapes are not told";
    case sched::SignatureRows::Open::kNo:
      break;
  }
  return "not batched: some input or output has no open leading dim";
}

Findings Signatures(const GraphFacts& facts) {
  Findings findings;
  if (tensor::SignatureIndex(facts.signatures, "serving_default") < 0) {
    std::vector<std::string> names;
    for (const auto& signature : facts.signatures) names.push_back(signature.name);
    findings.push_back(
        {.id = "model.serving_default",
         .level = facts.signatures.empty() ? Level::kError : Level::kWarning,
         .seen = names.empty()
                     ? "there is no signature at all"
                     : base::Cat("no signature serving_default; there is ", Join(names, ", ")),
         .why = names.empty() ? "nothing can be called"
                              : "clients that name no signature get an error",
         .action =
             "export with signatures={'serving_default': ...}; in Keras 3 with model.export"});
  }
  for (const tensor::Signature& signature : facts.signatures) {
    const bool batches = BatchWords(facts, signature) == "will be batched";
    findings.push_back({.id = base::Cat("model.signature.", Printable(signature.name)),
                        .level = batches ? Level::kOk : Level::kInfo,
                        .seen = base::Cat(Names(signature.inputs), " -> ", Names(signature.outputs),
                                          "; ", BatchWords(facts, signature))});
  }
  return findings;
}

Findings MissingOps(const Machine& machine, const GraphFacts& facts,
                    const std::vector<std::string>& libraries) {
  if (!machine.known_ops) return {};
  const auto known = machine.known_ops(libraries);
  if (!known.ok()) {
    return {
        {.id = "model.ops",
         .level = Level::kWarning,
         .seen = base::Cat("the runtime's ops cannot be listed: ", base::Message(known.status()))}};
  }
  Findings findings;
  for (const std::string& op : facts.ops) {
    if (known->contains(op)) continue;
    findings.push_back({.id = base::Cat("model.op.", Printable(op)),
                        .level = Level::kError,
                        .seen = base::Cat("the runtime does not know the op ", op),
                        .why = "the model cannot be loaded",
                        .action = engine::HelpForOp(op)});
  }
  if (findings.empty()) {
    findings.push_back(
        {.id = "model.ops",
         .seen = base::Cat("the runtime knows all ", facts.ops.size(), " ops that it uses")});
  }
  return findings;
}

absl::StatusOr<GraphFacts> ReadVersion(const fs::path& version) {
  std::error_code error;
  const fs::path path = version / "saved_model.pb";
  if (fs::file_size(path, error) > kGraphBytesMax || error) {
    return absl::NotFoundError(base::Cat("no readable ", path.string(), " below 2 GiB"));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return ReadGraph(bytes);
}

}  // namespace

Findings CheckModel(const Machine& machine, const ModelQuestion& question) {
  std::error_code error;
  const fs::path directory = fs::absolute(question.directory, error).lexically_normal();
  if (!fs::is_directory(directory, error)) {
    return {{.id = "model.complete",
             .level = Level::kError,
             .seen = base::Cat("there is no directory \"", Printable(question.directory), "\""),
             .action = "name the directory of a SavedModel, or the one above its versions"}};
  }
  const auto version = NewestVersion(directory);
  if (!version.has_value()) {
    return {{.id = "model.complete",
             .level = Level::kError,
             .seen = base::Cat(directory.string(), " holds no saved_model.pb and no version"),
             .why = "versions are directories with a number as their name: 1, 2, ...",
             .action = "name the directory of a SavedModel, or the one above its versions"}};
  }
  const base::UniqueFd parent(
      open(version->parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const models::FilesSeen files =
      models::LookAt(parent.get(), version->filename().string(), /*prefer_tflite=*/false);
  Findings findings = {Completeness(files, *version), Size(machine, files)};
  const auto facts = ReadVersion(*version);
  if (!facts.ok()) {
    findings.push_back({.id = "model.graph",
                        .level = Level::kError,
                        .seen = std::string(base::Message(facts.status())),
                        .action = "export the model again"});
    return findings;
  }
  if (!facts->tags.contains("serve")) {
    findings.push_back({.id = "model.tags",
                        .level = Level::kWarning,
                        .seen = "no graph has the tag \"serve\"",
                        .why = "the server looks for that tag by default",
                        .action = "export for serving, or set --saved_model_tags"});
  }
  if (!facts->stateful.empty()) {
    findings.push_back({.id = "model.state",
                        .level = Level::kInfo,
                        .seen = base::Cat("its runs keep state: ", facts->stateful),
                        .why = "it gets one replica and runs one request at a time"});
  }
  for (Finding& finding : Signatures(*facts)) findings.push_back(std::move(finding));
  for (Finding& finding : MissingOps(machine, *facts, question.op_libraries)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace tensord::doctor
