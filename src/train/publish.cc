// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/status_macros.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::train {
namespace {

namespace fs = std::filesystem;

absl::Status DiskError(std::string_view what, const fs::path& path) {
  return absl::UnavailableError(
      base::Cat("publish: cannot ", what, " ", path.string(), ": ", std::strerror(errno)));
}

// A model file, and with variables also their index and at least one piece of data.
absl::Status CheckComplete(const fs::path& folder) {
  std::error_code error;
  const auto missing = [&](std::string_view what) {
    return absl::FailedPreconditionError(base::Cat(
        "publish: ", folder.string(), " is no complete SavedModel: ", what, " is missing"));
  };
  if (fs::file_size(folder / "saved_model.pb", error) == 0 || error) {
    return missing("saved_model.pb");
  }
  const fs::path variables = folder / "variables";
  if (!fs::exists(variables, error)) return absl::OkStatus();
  if (!fs::exists(variables / "variables.index", error)) return missing("variables.index");
  for (const auto& entry : fs::directory_iterator(variables, error)) {
    if (entry.path().filename().string().starts_with("variables.data-")) return absl::OkStatus();
  }
  return missing("variables.data-*");
}

absl::Status Sync(const fs::path& path) {
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return DiskError("write through", path);
  return absl::OkStatus();
}

absl::Status SyncAll(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    RETURN_IF_ERROR(Sync(entry.path()));
  }
  return Sync(folder);
}

// The copy has the files of the original, byte for byte as many.
absl::Status CheckCopy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(from, error)) {
    if (!entry.is_regular_file(error)) continue;
    const fs::path copy = to / fs::relative(entry.path(), from, error);
    const auto size = fs::file_size(copy, error);
    if (error || size != entry.file_size(error)) {
      return absl::DataLossError(base::Cat("publish: ", copy.string(), " is not as the original"));
    }
  }
  return absl::OkStatus();
}

int64_t NextVersion(const fs::path& model_dir) {
  int64_t last = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(model_dir, error)) {
    const std::string name = entry.path().filename().string();
    int64_t version = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), version);
    if (end.ec == std::errc() && end.ptr == name.data() + name.size()) {
      last = std::max(last, version);
    }
  }
  return last + 1;
}

}  // namespace

absl::StatusOr<std::string> Publish(const std::string& from, const std::string& model_dir) {
  RETURN_IF_ERROR(CheckComplete(from));
  std::error_code error;
  fs::create_directories(model_dir, error);
  // Servers look at names that are numbers only.
  const fs::path copy = fs::path(model_dir) / base::Cat(".publishing_", getpid());
  fs::remove_all(copy, error);
  fs::copy(from, copy, fs::copy_options::recursive, error);
  absl::Status status =
      error
          ? absl::UnavailableError(base::Cat("publish: cannot copy ", from, ": ", error.message()))
          : absl::OkStatus();
  if (status.ok()) status = CheckCopy(from, copy);
  if (status.ok()) status = SyncAll(copy);
  fs::path target;
  while (status.ok()) {
    target = fs::path(model_dir) / base::Cat(NextVersion(model_dir));
    if (rename(copy.c_str(), target.c_str()) == 0) break;
    // Somebody else published just now: the next number, then.
    if (errno != ENOTEMPTY && errno != EEXIST) status = DiskError("rename to", target);
  }
  if (status.ok()) status = Sync(model_dir);
  if (status.ok()) return target.string();
  fs::remove_all(copy, error);
  return status;
}

}  // namespace tensord::train
