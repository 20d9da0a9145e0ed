// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "base/utf8.h"
#include "obs/log.h"
#include "obs/metrics.h"

namespace tensord::front {
namespace {

std::string_view Cut(std::string_view text) {
  return text.substr(0, limits::kAccessLogTextBytesMax);
}

std::string JsonText(std::string_view text) { return obs::Escape(base::ToUtf8(Cut(text))); }

void AppendText(std::string_view name, std::string_view value, std::string* line) {
  *line += base::Cat(",\"", name, "\":\"", JsonText(value), "\"");
}

void AppendMicroseconds(std::string_view name, absl::Duration value, std::string* line) {
  *line += base::Cat(",\"", name, "_us\":", absl::ToInt64Microseconds(value));
}

// Non-blocking: a FIFO without a reader is an error, and a slow one costs lines, never the server.
constexpr int kOpenFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK;

absl::Status CannotOpen(const std::string& path, int error) {
  return absl::InvalidArgumentError(
      base::Cat("cannot open --access_log=", path, ": ", std::strerror(error)));
}

absl::StatusOr<base::UniqueFd> OpenFile(const std::string& path) {
  base::UniqueFd file(path == "stdout" ? dup(STDOUT_FILENO)
                                       : open(path.c_str(), kOpenFlags | O_CREAT, 0640));
  if (file.valid()) return file;
  return CannotOpen(path, errno);
}

}  // namespace

absl::Status CheckAccessLog(const std::string& path) {
  if (path == "stdout") return absl::OkStatus();
  const base::UniqueFd file(open(path.c_str(), kOpenFlags));
  if (file.valid()) return absl::OkStatus();
  if (errno != ENOENT) return CannotOpen(path, errno);
  // It would be made.
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : base::Cat(path.substr(0, slash), "/.");
  return access(folder.c_str(), W_OK | X_OK) == 0 ? absl::OkStatus() : CannotOpen(path, errno);
}

std::string FormatAccess(const AccessEntry& entry, absl::Time wall) {
  std::string line =
      base::Cat("{\"time\":\"", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", wall, absl::UTCTimeZone()),
                "\",\"protocol\":\"", obs::TransportName(entry.transport), "\"");
  AppendText("peer", entry.peer, &line);
  AppendText("http_method", entry.http_method, &line);
  AppendText("target", entry.target, &line);
  AppendText("method", obs::MethodName(entry.method), &line);
  if (!entry.model.empty()) AppendText("model", entry.model, &line);
  if (entry.version) line += base::Cat(",\"version\":", *entry.version);
  if (!entry.signature.empty()) AppendText("signature", entry.signature, &line);
  AppendText("status", obs::StatusLabel(entry.code), &line);
  line += base::Cat(",\"http_status\":", entry.http_status, ",\"delivered\":", entry.delivered,
                    ",\"bytes_in\":", entry.bytes_in, ",\"bytes_out\":", entry.bytes_out);
  AppendMicroseconds("total", entry.total, &line);
  if (entry.stages) {
    for (size_t i = 0; i < obs::kStages; ++i) {
      AppendMicroseconds(obs::StageName(static_cast<obs::Stage>(i)), (*entry.stages)[i], &line);
    }
  }
  if (entry.run_time) AppendMicroseconds("runtime", *entry.run_time, &line);
  if (entry.rows > 0) line += base::Cat(",\"rows\":", entry.rows);
  if (entry.batch_rows > 0) line += base::Cat(",\"batch_rows\":", entry.batch_rows);
  if (!entry.request_id.empty()) AppendText("request_id", entry.request_id, &line);
  line.push_back('}');
  return line;
}

absl::StatusOr<std::unique_ptr<AccessLog>> AccessLog::Open(const std::string& path) {
  absl::StatusOr<base::UniqueFd> file = OpenFile(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::unique_ptr<loop::LoopThread>> thread = loop::LoopThread::Start();
  if (!thread.ok()) return thread.status();
  return std::unique_ptr<AccessLog>(new AccessLog(path, *std::move(thread), *std::move(file)));
}

AccessLog::AccessLog(std::string path, std::unique_ptr<loop::LoopThread> thread,
                     base::UniqueFd file)
    : path_(std::move(path)),
      file_(std::move(file)),
      looked_(thread->loop().ClockNow()),
      thread_(std::move(thread)) {}

void AccessLog::Write(AccessEntry entry) {
  bool first = false;
  {
    base::MutexLock lock(&mu_);
    if (waiting_.size() >= limits::kAccessLogEntriesMax) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    first = waiting_.empty();
    waiting_.push_back(std::move(entry));
  }
  // Never refused: one task waits for any number of lines.
  if (first) (void)thread_->Run([this] { WriteWaiting(); });
}

void AccessLog::Reopen() {
  (void)thread_->Run([this] { OpenAgain(); });
}

void AccessLog::Flush(absl::Duration longest) { thread_->Flush(longest); }

void AccessLog::WriteWaiting() {
  std::vector<AccessEntry> entries;
  {
    base::MutexLock lock(&mu_);
    entries.swap(waiting_);
  }
  LookForRename();
  const absl::Duration to_wall = base::WallTime() - thread_->loop().ClockNow();
  std::string text(torn_ ? "\n" : "");  // So that what comes now is a line of its own.
  const uint64_t dropped = this->dropped();
  if (dropped != dropped_told_) {
    // A reader must not take a gap for quiet.
    text += base::Cat("{\"dropped_lines\":", dropped - dropped_told_, "}\n");
    dropped_told_ = dropped;
  }
  for (const AccessEntry& entry : entries) {
    text += FormatAccess(entry, entry.at + to_wall);
    text.push_back('\n');
  }
  WriteAll(text, entries.size());
}

void AccessLog::WriteAll(std::string_view text, size_t lines) {
  while (!text.empty()) {
    const ssize_t written = write(file_.get(), text.data(), text.size());
    if (written == 0) continue;
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      // Told once, not with every line: a full disk lasts.
      if (!std::exchange(failing_, true)) {
        obs::Error("cannot write the access log {}: {}; its lines are lost until that works again",
                   path_, std::strerror(errno));
      }
      dropped_.fetch_add(lines, std::memory_order_relaxed);
      return;
    }
    torn_ = text[static_cast<size_t>(written) - 1] != '\n';
    text.remove_prefix(static_cast<size_t>(written));
  }
  failing_ = false;
  lines_.fetch_add(lines, std::memory_order_relaxed);
}

void AccessLog::OpenAgain() {
  if (to_stdout()) return;
  absl::StatusOr<base::UniqueFd> file = OpenFile(path_);
  if (!file.ok()) {
    return obs::Error("{}; the old file is written on", base::Message(file.status()));
  }
  file_ = *std::move(file);
}

void AccessLog::LookForRename() {
  const absl::Time now = thread_->loop().ClockNow();
  if (to_stdout() || now - looked_ < limits::kAccessLogLookEvery) return;
  looked_ = now;
  struct stat named {};
  struct stat open {};
  const bool same = stat(path_.c_str(), &named) == 0 && fstat(file_.get(), &open) == 0 &&
                    named.st_dev == open.st_dev && named.st_ino == open.st_ino;
  if (!same) OpenAgain();
}

}  // namespace tensord::front
