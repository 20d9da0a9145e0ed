// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/version.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/commands.h"

namespace tensord::cli {
namespace {

// What the program wrote to stdout; empty when it cannot be started. Its stderr is ours.
std::string Output(std::vector<std::string> arguments) {
  constexpr size_t kBytesMax = 64 * 1024;  // A few lines are expected.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const base::UniqueFd reading(ends[0]);
  base::UniqueFd writing(ends[1]);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return "";
  writing.Reset();
  std::string text;
  char part[4096];
  while (text.size() < kBytesMax) {
    const ssize_t got = read(reading.get(), part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  return text;
}

}  // namespace

std::string OwnVersion() { return TENSORD_VERSION; }

std::string WorkerPath() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "tensord-worker").string();
}

std::string RuntimeVersion(const std::string& library_dir) {
  std::vector<std::string> command = {WorkerPath(), "--selftest"};
  if (!library_dir.empty()) command.push_back(base::Cat("--tensorflow_library_dir=", library_dir));
  const std::string text = Output(std::move(command));
  constexpr std::string_view kLabel = "TensorFlow version: ";
  const size_t at = text.find(kLabel);
  if (at == std::string::npos) return "none found (the reason is above)";
  const size_t begin = at + kLabel.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

void PrintVersions(const std::string& library_dir) {
  std::printf("tensord %s\n", OwnVersion().c_str());
  std::fflush(stdout);
  std::printf("TensorFlow %s\n", RuntimeVersion(library_dir).c_str());
}

int Version(const Arguments& arguments) {
  if (!arguments.empty()) {
    std::fprintf(stderr, "tensord version takes no arguments\n");
    return 2;
  }
  PrintVersions("");
  return 0;
}

}  // namespace tensord::cli
