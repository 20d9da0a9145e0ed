// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "loop/loop_thread.h"
#include "obs/method.h"

namespace tensord::front {

// One line of the access log.
struct AccessEntry {
  absl::Time at = {};  // Monotonic, of the request's end.
  obs::Transport transport = obs::Transport::kRest;
  obs::Method method = obs::Method::kOther;
  absl::StatusCode code = absl::StatusCode::kOk;
  int http_status = 0;  // 0: the client left before an answer.
  bool delivered = true;
  std::string peer = {};
  std::string http_method = {};
  std::string target = {};  // As sent, cut at kAccessLogTextBytesMax.
  std::string model = {};   // As the client named it, cut likewise.
  std::optional<int64_t> version = {};
  std::string signature = {};
  std::string request_id = {};  // Of the header x-request-id, cut likewise.
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  absl::Duration total = {};
  std::optional<std::array<absl::Duration, obs::kStages>> stages = {};
  std::optional<absl::Duration> run_time = {};
  int64_t rows = 0;
  int64_t batch_rows = 0;
};

// The line without its newline: one JSON object, valid UTF-8 whatever the client sent. Pure.
std::string FormatAccess(const AccessEntry& entry, absl::Time wall);

// Whether AccessLog::Open would open that; makes no file. INVALID_ARGUMENT, as from there.
absl::Status CheckAccessLog(const std::string& path);

// Where lines go: formatted and written by a thread of its own, so that no disk holds a loop up.
// Lines that come while kAccessLogEntriesMax wait are dropped and counted.
// Threads: safe from any.
class AccessLog {
 public:
  // `path`: a file, which is appended to, or "stdout". INVALID_ARGUMENT names the file and why it
  // cannot be opened.
  static absl::StatusOr<std::unique_ptr<AccessLog>> Open(const std::string& path);

  void Write(AccessEntry entry);
  // Opens the file anew by its name: for log rotation. It also happens by itself within
  // kAccessLogLookEvery when the name leads elsewhere.
  void Reopen();
  // Waits until all that was written is in the file, at most for `longest`.
  void Flush(absl::Duration longest);

  uint64_t lines() const { return lines_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  AccessLog(std::string path, std::unique_ptr<loop::LoopThread> thread, base::UniqueFd file);

  // On its thread.
  void WriteWaiting();
  void WriteAll(std::string_view text, size_t lines);
  void OpenAgain();
  void LookForRename();
  bool to_stdout() const { return path_ == "stdout"; }

  const std::string path_;
  std::atomic<uint64_t> lines_{0};
  std::atomic<uint64_t> dropped_{0};
  base::Mutex mu_;
  std::vector<AccessEntry> waiting_ ABSL_GUARDED_BY(mu_);

  // Of the thread.
  base::UniqueFd file_;
  absl::Time looked_;
  uint64_t dropped_told_ = 0;
  bool failing_ = false;
  bool torn_ = false;  // What is in the file ends within a line.

  const std::unique_ptr<loop::LoopThread> thread_;  // Last: its tasks use the rest.
};

}  // namespace tensord::front
