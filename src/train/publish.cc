// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShardPrefix = "variables.data-";
constexpr int kShardsMax = 99'999;  // Of five digits.
constexpr std::string_view kCopyPrefix = ".publishing_";
constexpr auto kLeftoverAge = std::chrono::hours(24);  // No copy takes as long.
constexpr size_t kCompareBytes = size_t{1} << 20;      // At once.

absl::Status DiskError(std::string_view what, const fs::path& path) {
  return absl::UnavailableError(
      base::Cat("publish: cannot ", what, " ", path.string(), ": ", std::strerror(errno),
                "; --publish needs a folder that this user may write, and room for the model"));
}

// "variables.data-00002-of-00004"; none for other names, such as those of a save that goes on.
struct Shard {
  int number = 0;
  int count = 0;
};
std::optional<Shard> ShardOf(std::string_view name) {
  if (!name.starts_with(kShardPrefix)) return std::nullopt;
  name.remove_prefix(kShardPrefix.size());
  const size_t of = name.find("-of-");
  if (of == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) {
    int value = -1;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return end.ec == std::errc() && end.ptr == digits.data() + digits.size() ? value : -1;
  };
  const Shard shard{.number = number(name.substr(0, of)), .count = number(name.substr(of + 4))};
  if (shard.number < 0 || shard.number >= shard.count || shard.count > kShardsMax) {
    return std::nullopt;
  }
  return shard;
}

std::string ShardName(int number, int count) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%05d-of-%05d", number, count);
  return base::Cat(kShardPrefix, digits);
}

// The name of the first file that the folder of variables lacks, or "".
std::string MissingOfVariables(const fs::path& variables) {
  std::error_code error;
  if (!fs::is_regular_file(variables / "variables.index", error)) return "variables.index";
  std::set<std::pair<int, int>> shards;  // Count and number.
  fs::directory_iterator at(variables, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const auto shard = ShardOf(at->path().filename().string());
    if (shard.has_value()) shards.emplace(shard->count, shard->number);
  }
  if (error || shards.empty()) return "variables.data-*";
  // Each number follows the one before; where another count begins, the last one was complete.
  int next = 0;
  int count = shards.begin()->first;
  for (const auto& [of, number] : shards) {
    if (of != count && next < count) break;
    if (of != count) next = 0;
    count = of;
    if (number != next) break;
    ++next;
  }
  return next < count ? ShardName(next, count) : "";
}

// A model file, and with variables also their index and every piece of data.
absl::Status CheckComplete(const fs::path& folder) {
  std::error_code error;
  std::string missing;
  if (fs::file_size(folder / "saved_model.pb", error) == 0 || error) {
    missing = "saved_model.pb";
  } else if (fs::exists(folder / "variables", error)) {
    missing = MissingOfVariables(folder / "variables");
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      base::Cat("publish: ", folder.string(), " is no complete SavedModel: ", missing,
                " is missing; let the script export there (model.export or tf.saved_model.save)"));
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

// A file to be read from its start to its end; what the kernel keeps of it in memory is let go, so
// that the disk is asked, where it is written through.
base::UniqueFd OpenToCompare(const fs::path& path) {
  base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.valid()) posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return fd;
}

// The next bytes, as many as fit or the rest; negative on an error.
ssize_t ReadFull(int fd, std::span<char> bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(filled);
}

bool SameBytes(const fs::path& one, const fs::path& other) {
  const base::UniqueFd first = OpenToCompare(one);
  const base::UniqueFd second = OpenToCompare(other);
  if (!first.valid() || !second.valid()) return false;
  std::vector<char> left(kCompareBytes);
  std::vector<char> right(kCompareBytes);
  while (true) {
    const ssize_t got = ReadFull(first.get(), left);
    if (got < 0 || ReadFull(second.get(), right) != got) return false;
    if (std::memcmp(left.data(), right.data(), static_cast<size_t>(got)) != 0) return false;
    if (got < static_cast<ssize_t>(left.size())) return true;
  }
}

// Of one that was killed. Not by its process: that may be another machine's.
void RemoveLeftovers(const fs::path& model_dir) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(model_dir, error)) {
    const bool ours = entry.path().filename().string().starts_with(kCopyPrefix);
    const auto changed = fs::last_write_time(entry.path(), error);
    const bool old = !error && fs::file_time_type::clock::now() - changed > kLeftoverAge;
    if (ours && old) fs::remove_all(entry.path(), error);
  }
}

absl::StatusOr<int64_t> NextVersion(const fs::path& model_dir) {
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
  if (last < std::numeric_limits<int64_t>::max()) return last + 1;
  return absl::ResourceExhaustedError(base::Cat("publish: ", model_dir.string(), " has version ",
                                                last, ", and there is no number after it"));
}

}  // namespace

ExportMark MarkOf(const std::string& folder) {
  struct stat found {};
  if (stat(base::Cat(folder, "/saved_model.pb").c_str(), &found) != 0) return {};
  return {.file = found.st_ino,
          .changed_ns = found.st_ctim.tv_sec * 1'000'000'000 + found.st_ctim.tv_nsec};
}

absl::Status CheckPlaces(const std::string& from, const std::string& model_dir) {
  std::error_code error;
  const std::string one = base::Cat(fs::weakly_canonical(fs::absolute(from), error).string(), "/");
  const std::string other =
      base::Cat(fs::weakly_canonical(fs::absolute(model_dir), error).string(), "/");
  if (!one.starts_with(other) && !other.starts_with(one)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat("--export-dir ", from, " and --publish ", model_dir,
                ": one is in the other; the script exports to a folder of its own, and the server "
                "watches another"));
}

absl::Status CompareFolders(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::recursive_directory_iterator at(from, fs::directory_options::follow_directory_symlink, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    const fs::path copy = fs::path(to) / at->path().lexically_relative(from);
    if (!SameBytes(at->path(), copy)) {
      return absl::DataLossError(
          base::Cat("publish: ", copy.string(), " is not as ", at->path().string(),
                    ": did something still write there? Else look at the disk, and publish again"));
    }
  }
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(base::Cat("publish: cannot read ", from, ": ", error.message()));
}

absl::StatusOr<std::string> Publish(const std::string& from, const std::string& model_dir) {
  RETURN_IF_ERROR(CheckComplete(from));
  std::error_code error;
  fs::create_directories(model_dir, error);
  if (error) {
    errno = error.value();
    return DiskError("make", model_dir);
  }
  RemoveLeftovers(model_dir);
  // Servers look at names that are numbers only.
  const fs::path copy = fs::path(model_dir) / base::Cat(kCopyPrefix, getpid());
  fs::remove_all(copy, error);
  fs::copy(from, copy, fs::copy_options::recursive, error);
  absl::Status status =
      error
          ? absl::UnavailableError(base::Cat("publish: cannot copy ", from, ": ", error.message()))
          : absl::OkStatus();
  if (status.ok()) status = SyncAll(copy);
  if (status.ok()) status = CompareFolders(from, copy);
  fs::path target;
  while (status.ok()) {
    const absl::StatusOr<int64_t> version = NextVersion(model_dir);
    if (!version.ok()) {
      status = version.status();
      break;
    }
    target = fs::path(model_dir) / base::Cat(*version);
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
