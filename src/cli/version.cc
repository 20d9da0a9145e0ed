// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/version.h"

#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output_of.h"

namespace tensord::cli {

std::string OwnVersion() { return TENSORD_VERSION; }

std::string WorkerPath() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "tensord-worker").string();
}

absl::Status CheckWorkerProgram() {
  if (access("/proc/self/exe", F_OK) != 0) {
    return absl::FailedPreconditionError(
        base::Cat("/proc/self/exe: ", std::strerror(errno),
                  "; tensord needs /proc: mount it (mount -t proc proc /proc)"));
  }
  const std::string path = WorkerPath();
  if (access(path.c_str(), X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      base::Cat(path, " is missing or may not be executed; it must lie beside tensord"));
}

std::string RuntimeVersion(const std::string& library_dir) {
  std::vector<std::string> command = {WorkerPath(), "--selftest"};
  if (!library_dir.empty()) command.push_back(base::Cat("--tensorflow_library_dir=", library_dir));
  constexpr size_t kBytesMax = 64 * 1024;  // A few lines are expected.
  const std::string text = OutputOf(std::move(command), kBytesMax);
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
