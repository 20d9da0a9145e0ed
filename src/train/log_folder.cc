// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/log_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "base/text.h"

namespace tensord::train {
namespace {

constexpr size_t kRunIdBytesMax = 64;  // It goes into names of files and control groups, of 255.

}  // namespace

absl::Status CheckRunId(std::string_view run_id) {
  bool fine = !run_id.empty() && run_id.size() <= kRunIdBytesMax && run_id.front() != '.' &&
              run_id.front() != '-';
  for (const char c : run_id) {
    fine = fine &&
           (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-');
  }
  if (fine) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat("--run-id ", run_id, ": it becomes part of file names; give 1 to ", kRunIdBytesMax,
                " letters, digits, '.', '_' or '-', beginning with a letter, a digit or '_'"));
}

absl::Status MakeOwnFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
  if (errno != EEXIST) {
    return absl::UnavailableError(base::Cat("the folder for logs, ", path, ", cannot be made: ",
                                            std::strerror(errno), "; give another by --log-dir"));
  }
  struct stat found {};
  const bool ours = lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
                    found.st_uid == geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (ours) return absl::OkStatus();
  return absl::PermissionDeniedError(
      base::Cat("the folder for logs, ", path,
                ", is there already and is not only this user's; remove it, or give another by "
                "--log-dir"));
}

absl::StatusOr<base::UniqueFd> OpenToAppend(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const base::UniqueFd inside(open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  base::UniqueFd fd;
  if (inside.valid()) {
    // O_NONBLOCK: a FIFO that nobody reads is an error, not a wait.
    constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    fd = base::UniqueFd(openat(inside.get(), name.c_str(), kFlags, 0644));
  }
  if (fd.valid()) return fd;
  const int reason = errno;
  std::string why = std::strerror(reason);
  if (reason == ELOOP) why = "it is a link";
  if (reason == ENOTDIR) why = "its folder is a link, or none";
  return absl::UnavailableError(base::Cat(path, " cannot be written: ", why));
}

}  // namespace tensord::train
