// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/request_log.h"

#include <cmath>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "obs/log.h"

namespace tensord::front {

// ---- The writer ------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Start() {
  absl::StatusOr<std::unique_ptr<loop::LoopThread>> thread = loop::LoopThread::Start();
  if (!thread.ok()) return thread.status();
  return std::unique_ptr<RecordWriter>(new RecordWriter(*std::move(thread)));
}

RecordWriter::RecordWriter(std::unique_ptr<loop::LoopThread> thread) : thread_(std::move(thread)) {}

void RecordWriter::Write(const std::string& prefix, LoggedRequest request, double sampling_rate,
                         const std::function<void(const absl::Status&)>& done) {
  const uint64_t bytes = request.request.size() + request.response.size();
  const uint64_t before = waiting_bytes_.fetch_add(bytes);
  // One of any size is taken when nothing waits.
  const bool full = before > 0 && before + bytes > limits::kRequestLogBytesWaiting;
  const bool posted = !full && thread_->Run([this, prefix, request = std::move(request),
                                             sampling_rate, bytes, done] {
    const absl::Status status = Append(prefix, request, sampling_rate);
    waiting_bytes_.fetch_sub(bytes);
    done(status);
    Tell(status);
  });
  if (posted) return;
  waiting_bytes_.fetch_sub(bytes);
  done(absl::ResourceExhaustedError("the request log's disk does not keep up"));
}

absl::Status RecordWriter::Append(const std::string& prefix, const LoggedRequest& request,
                                  double rate) {
  const absl::Time wall = base::WallTime();
  const std::string record =
      wire::EncodePredictionLog(request.call, request.request, request.response,
                                {.answered = request.answered,
                                 .sampling_rate = rate,
                                 .unix_seconds = absl::ToUnixSeconds(wall)});
  if (!std::exchange(ticking_, true)) Tick();
  return files_.try_emplace(prefix, prefix)
      .first->second.Append(record, wall, thread_->loop().ClockNow());
}

// Files get their names in the end even where no further request comes.
void RecordWriter::Tick() {
  loop::EventLoop& loop = thread_->loop();
  for (auto& [prefix, file] : files_) file.CompleteIfOld(loop.Now());
  loop.At(loop.Now() + limits::kRecordFileLookEvery, [this] { Tick(); });
}

// Told once, not with every request: a full disk lasts.
void RecordWriter::Tell(const absl::Status& status) {
  const bool failing = !status.ok();
  if (std::exchange(failing_, failing) == failing) return;
  if (failing) {
    obs::Error("{}; requests are not logged until that works again", base::Message(status));
  } else {
    obs::Info("requests are logged again");
  }
}

void RecordWriter::Complete(absl::Duration longest) {
  (void)thread_->Run([this] {
    for (auto& [prefix, file] : files_) file.Complete();
  });
  thread_->Flush(longest);
}

// ---- A model ---------------------------------------------------------------------------------

void RequestLog::Configure(const config::RequestLogging& config) {
  base::MutexLock lock(&mu_);
  config_ = config;
  threshold_.store(static_cast<uint64_t>(std::llround(std::ldexp(config.sampling_rate, 32))));
}

uint64_t RequestLog::Draw() {
  static thread_local std::mt19937 random(std::random_device{}());
  return random();
}

void RequestLog::Write(LoggedRequest request) {
  std::string prefix;
  double rate = 0;
  {
    base::MutexLock lock(&mu_);
    prefix = config_.filename_prefix;
    rate = config_.sampling_rate;
  }
  if (rate <= 0) return;  // Turned off since the draw.
  writer_->Write(
      prefix, std::move(request), rate,
      [metrics = metrics_](const absl::Status& status) { metrics->CountLogged(status.code()); });
}

// ---- All -------------------------------------------------------------------------------------

std::shared_ptr<RequestLog> RequestLogs::Of(const std::string& model) {
  std::shared_ptr<RequestLog>& log = logs_[model];
  if (log == nullptr) {
    log = std::make_shared<RequestLog>(writer_, &metrics_->Model(model));
    const auto config = configs_.find(model);
    if (config != configs_.end()) log->Configure(config->second);
  }
  return log;
}

void RequestLogs::Configure(std::map<std::string, config::RequestLogging> configs) {
  configs_ = std::move(configs);
  for (const auto& [model, log] : logs_) {
    const auto config = configs_.find(model);
    log->Configure(config == configs_.end() ? config::RequestLogging{} : config->second);
  }
}

}  // namespace tensord::front
