// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output_of.h"
#include "cli/version.h"
#include "doctor/checks/checks.h"
#include "doctor/report.h"
#include "doctor/words.h"

namespace tensord::cli {
namespace {

constexpr int kWrongUsage = 3;  // 1 and 2 are what was found.

struct DoctorOptions {
  std::vector<std::string> models;
  std::vector<std::string> op_libraries;
  std::vector<int> ports = doctor::Question().ports;
  std::string library_directory;
  std::string colour = "auto";
  bool json = false;
  bool problems = false;
};

void Describe(CLI::App& app, DoctorOptions* options) {
  app.footer("Exit code: 0 nothing worse than info, 1 warnings, 2 errors, 3 wrong usage.");
  app.add_option("--model", options->models,
                 "A SavedModel's directory, or the one above its versions; may be repeated");
  app.add_option("--op_library", options->op_libraries,
                 "A shared library with ops that the models need; may be repeated");
  app.add_option("--port", options->ports, "Ports that are to be free")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--tensorflow_library_dir", options->library_directory,
                 "Where TensorFlow's libraries are, as for `tensord serve`");
  app.add_option("--color", options->colour, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_flag("--problems", options->problems, "Leave out what is good");
  app.add_flag("--json", options->json, "One JSON object instead of a table");
}

absl::StatusOr<std::set<std::string>> KnownOps(const DoctorOptions& options,
                                               const std::vector<std::string>& op_libraries) {
  constexpr size_t kBytesMax = 4 << 20;  // Some 2,000 names.
  std::vector<std::string> command = {WorkerPath(), "--list_ops"};
  if (!options.library_directory.empty()) {
    command.push_back(base::Cat("--tensorflow_library_dir=", options.library_directory));
  }
  for (const std::string& library : op_libraries) {
    command.push_back(base::Cat("--op_library=", library));
  }
  const std::string text = OutputOf(std::move(command), kBytesMax);
  std::set<std::string> names;
  for (const std::string_view name : doctor::Split(text, "\n")) names.emplace(name);
  if (names.empty()) return absl::UnavailableError("the reason is above");
  return names;
}

}  // namespace

int Doctor(const Arguments& arguments) {
  CLI::App app("Looks at the machine, the environment and models, and says what is wrong",
               "tensord doctor");
  DoctorOptions options;
  Describe(app, &options);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  doctor::Machine machine = doctor::ThisMachine(options.library_directory);
  machine.known_ops = [&options](const std::vector<std::string>& op_libraries) {
    return KnownOps(options, op_libraries);
  };
  doctor::Question question;
  for (const std::string& model : options.models) {
    question.models.push_back({.directory = model, .op_libraries = options.op_libraries});
  }
  question.ports = options.ports;
  const doctor::Findings findings = doctor::CheckAll(machine, question);
  const bool colour =
      options.colour == "always" || (options.colour == "auto" && isatty(STDOUT_FILENO) == 1);
  const std::string text =
      options.json ? doctor::ToJson(findings)
                   : doctor::ToTable(findings, {.colour = colour, .all = !options.problems});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return doctor::ExitCode(findings);
}

}  // namespace tensord::cli
