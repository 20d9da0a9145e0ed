// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/tf_record.h"

namespace tensord::front {
namespace {

constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kEnding = ".tfrecord";

// What Open puts between prefix and ending: a time, a process and a number. Other files with the
// same beginning are not ours.
bool IsOurs(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem) || !name.ends_with(kEnding)) return false;
  name = name.substr(stem.size(), name.size() - stem.size() - kEnding.size());
  const size_t dashes = static_cast<size_t>(std::ranges::count(name, '-'));
  return dashes == 2 && name.find_first_not_of("0123456789T-") == std::string_view::npos;
}

}  // namespace

absl::Status RecordFile::Fail(std::string_view what) {
  absl::Status status = absl::UnavailableError(
      base::Cat("cannot ", what, " ", name_, kPartial, ": ", std::strerror(errno)));
  // A record that is only half in the file makes the rest of it unreadable: cut it off.
  if (file_.valid() && ftruncate(file_.get(), static_cast<off_t>(bytes_)) == 0) Complete();
  file_.Reset();
  return status;
}

absl::Status RecordFile::Open(absl::Time wall, absl::Time now) {
  name_ = base::Cat(prefix_, "-", absl::FormatTime("%Y%m%dT%H%M%S", wall, absl::UTCTimeZone()), "-",
                    static_cast<int64_t>(getpid()), "-", number_++, kEnding);
  bytes_ = 0;
  opened_ = now;
  file_ = base::UniqueFd(
      open(base::Cat(name_, kPartial).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
  return file_.valid() ? absl::OkStatus() : Fail("make the request log");
}

absl::Status RecordFile::Append(std::string_view record, absl::Time wall, absl::Time now) {
  if (!file_.valid()) RETURN_IF_ERROR(Open(wall, now));
  std::string framed;
  base::AppendTfRecord(record, &framed);
  std::string_view left = framed;
  while (!left.empty()) {
    const ssize_t written = write(file_.get(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Fail("write the request log");
    left.remove_prefix(static_cast<size_t>(written));
  }
  bytes_ += framed.size();
  if (bytes_ >= limits::kRecordFileBytesMax) Complete();
  return absl::OkStatus();
}

void RecordFile::CompleteIfOld(absl::Time now) {
  if (file_.valid() && now - opened_ >= limits::kRecordFileAgeMax) Complete();
}

void RecordFile::Complete() {
  if (!file_.valid()) return;
  file_.Reset();
  const std::string partial = base::Cat(name_, kPartial);
  if (bytes_ == 0) {
    (void)unlink(partial.c_str());
    return;
  }
  (void)rename(partial.c_str(), name_.c_str());
  DropOldest();
}

void RecordFile::DropOldest() const {
  const std::filesystem::path prefix(prefix_);
  const std::string stem = prefix.filename().string() + "-";
  std::vector<std::string> ours;
  std::error_code error;
  for (std::filesystem::directory_iterator at(prefix.parent_path(), error), end;
       !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (IsOurs(name, stem)) ours.push_back(std::move(name));
  }
  if (ours.size() <= limits::kRecordFilesKept) return;
  std::ranges::sort(ours);  // By time, the first thing behind the stem.
  ours.resize(ours.size() - limits::kRecordFilesKept);
  for (const std::string& name : ours) {
    std::filesystem::remove(prefix.parent_path() / name, error);
  }
}

}  // namespace tensord::front
