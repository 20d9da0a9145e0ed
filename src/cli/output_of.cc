// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/output_of.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace tensord::cli {

std::string OutputOf(std::vector<std::string> arguments, size_t bytes_max) {
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
  while (text.size() < bytes_max) {
    const ssize_t got = read(reading.get(), part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  return text;
}

}  // namespace tensord::cli
