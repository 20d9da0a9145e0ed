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
  base::UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (fd.valid()) return fd;
  const bool link = errno == ELOOP;
  return absl::UnavailableError(
      base::Cat(path, " cannot be written: ", link ? "it is a link" : std::strerror(errno)));
}

}  // namespace tensord::train
