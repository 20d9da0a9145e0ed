// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "cli/commands.h"
#include "obs/log.h"
#include "supervisor/spawn.h"

namespace tensord::cli {
namespace {

struct Command {
  std::string_view name;
  int (*run)(const Arguments& arguments);
  std::string_view help;  // Empty: not for people.
};

constexpr Command kCommands[] = {
    {"serve", Serve, "serve models over gRPC and REST; `tensord serve --help` lists its options"},
    {"check", Check, "say what a command line and its files come to, without starting"},
    {"version", Version, "print the versions of tensord and of the TensorFlow it finds"},
    {"bench", Bench, "put a server under load; `tensord bench --help` lists its options"},
    {"doctor", Doctor, "look at the machine, its settings and models, and say what is wrong"},
    {"top", Top, "show what the machine, its GPUs, a server and a training job do"},
    {"advise", Advise, "say what holds the machine back; `tensord advise cost`: own or rent"},
    {"train", Train, "run a training job; `tensord train --help` lists its options"},
    {"docs", Docs, "print a generated page of the documentation"},
    {"front", Front, ""},
};

void PrintUsage(FILE* file) {
  std::fprintf(file, "Usage: tensord <command> [arguments]\n\nCommands:\n");
  for (const Command& command : kCommands) {
    if (command.help.empty()) continue;
    std::fprintf(file, "  %-8s %s\n", std::string(command.name).c_str(),
                 std::string(command.help).c_str());
  }
}

int Main(const std::string& program, const Arguments& arguments) {
  const std::string_view name = std::string_view(program).substr(program.rfind('/') + 1);
  if (name == "tensorflow_model_server") return ServeAsOriginal(program, arguments);
  if (arguments.empty()) {
    PrintUsage(stderr);
    return 2;
  }
  const std::string& wanted = arguments.front();
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (wanted == "--version") return Version(rest);
  if (wanted == "--help" || wanted == "-h" || wanted == "help") {
    PrintUsage(stdout);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (command.name == wanted) return command.run(rest);
  }
  std::fprintf(stderr, "tensord: there is no command \"%s\"\n\n", wanted.c_str());
  PrintUsage(stderr);
  return 2;
}

}  // namespace
}  // namespace tensord::cli

int main(int argc, char** argv) {
  tensord::supervisor::TidyDescriptors();
  const int code =
      tensord::cli::Main(argc > 0 ? argv[0] : "tensord", {argv + (argc > 0 ? 1 : 0), argv + argc});
  tensord::obs::FlushLog(tensord::limits::kLogFlushMax);
  return code;
}
