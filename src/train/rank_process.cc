// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/rank_process.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "obs/log.h"
#include "train/log_folder.h"

namespace tensord::train {
namespace {

constexpr int kReadsAtOnce = 16;  // Of 4 KiB: no rank's chatter holds up the others.
constexpr size_t kStageBytesMax = 64;

// What stands behind `name` in "step=12 wait=0.25 stage=Map", "" when it is not there.
std::string_view WordIn(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = line.substr(at + name.size());
  return rest.substr(0, rest.find(' '));
}

double NumberIn(std::string_view line, std::string_view name, double otherwise) {
  const std::string_view word = WordIn(line, name);
  double number = otherwise;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return std::isfinite(number) ? number : otherwise;
}

}  // namespace

RankProcess::RankProcess(Place place, Spawned spawned, loop::EventLoop* loop, Console* console)
    : place_(std::move(place)),
      pid_(spawned.pid),
      loop_(loop),
      console_(console),
      out_{.as = 1, .pipe = std::move(spawned.out), .cutter = {}, .watch = {}},
      err_{.as = 2, .pipe = std::move(spawned.err), .cutter = {}, .watch = {}},
      beats_{.as = 3, .pipe = std::move(spawned.beats), .cutter = {}, .watch = {}} {
  auto log = OpenToAppend(place_.log_path);
  if (log.ok()) {
    log_ = *std::move(log);
  } else {
    LogFailed(base::Message(log.status()));
  }
  view_.rank = place_.rank;
  view_.watched = place_.watched;
  view_.alone = place_.alone;
  view_.started = view_.last_progress = loop->ClockNow();
  for (Stream* stream : {&out_, &err_}) {
    stream->watch =
        loop->Add(stream->pipe.get(), EPOLLIN, [this, stream](uint32_t) { Read(stream); });
  }
  if (beats_.pipe.valid()) {
    beats_.watch = loop->Add(beats_.pipe.get(), EPOLLIN, [this](uint32_t) { ReadBeats(); });
  }
}

void RankProcess::Read(Stream* stream) {
  char bytes[4096];
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const ssize_t got = read(stream->pipe.get(), bytes, sizeof(bytes));
    if (got < 0) return;  // Nothing more now.
    if (got == 0) {
      stream->watch.Reset();
      return;
    }
    view_.last_progress = loop_->Now();
    for (const std::string& line : stream->cutter.Feed({bytes, static_cast<size_t>(got)})) {
      Take(stream->as, line);
    }
  }
}

void RankProcess::Take(int as, std::string_view line) {
  const std::string plain = Plain(line);
  words_.Add(plain, SinceStart());
  Log(plain);
  console_->Line(as, place_.name, line);
}

void RankProcess::Log(std::string_view line) {
  const std::string text = base::Cat(line, "\n");
  size_t at = 0;
  while (log_.valid() && at < text.size()) {
    const ssize_t put = write(log_.get(), text.data() + at, text.size() - at);
    if (put > 0) at += static_cast<size_t>(put);
    if (put < 0 && errno != EINTR) {
      // A disk that is full may have room again: the file stays open.
      return LogFailed(base::Cat(place_.log_path, " cannot be written: ", std::strerror(errno)));
    }
  }
}

void RankProcess::LogFailed(std::string_view why) {
  if (!log_failed_) obs::Warn("{}; the output goes on here", why);
  log_failed_ = true;
}

void RankProcess::ReadBeats() {
  char bytes[4096];
  const ssize_t got = read(beats_.pipe.get(), bytes, sizeof(bytes));
  if (got < 0) return;
  if (got == 0) {
    beats_.watch.Reset();
    return;
  }
  for (const std::string& line : beats_.cutter.Feed({bytes, static_cast<size_t>(got)})) {
    Beat(line);
  }
}

void RankProcess::Beat(std::string_view line) {
  helped_ = true;
  const auto steps = static_cast<int64_t>(NumberIn(line, "step=", 0));
  status_.input_wait = NumberIn(line, "wait=", 0);
  status_.input_stage = WordIn(line, "stage=").substr(0, kStageBytesMax);
  status_.input_stage_share = NumberIn(line, "part=", 0);
  status_.all_reduce = NumberIn(line, "reduce=", -1);
  status_.all_reduce_bytes = NumberIn(line, "bytes=", -1);
  if (steps > view_.steps) {
    view_.steps = steps;
    view_.last_progress = loop_->Now();
  }
}

RankStatus RankProcess::Status() {
  rate_.Add(loop_->ClockNow(), view_.steps);
  status_.name = place_.name;
  status_.step = view_.steps;
  status_.steps_per_second = rate_.PerSecond();
  return status_;
}

void RankProcess::SetStopped(bool stopped) {
  view_.stopped_since = stopped ? loop_->ClockNow() : absl::InfiniteFuture();
}

void RankProcess::ShowProgress(bool line_due) {
  for (Stream* stream : {&out_, &err_}) {
    if (!line_due && !console_->rewrites(stream->as)) continue;
    const std::string bar = stream->cutter.Progress();
    if (!bar.empty()) console_->Progress(stream->as, place_.name, bar);
  }
}

void RankProcess::Drain() {
  for (Stream* stream : {&out_, &err_}) {
    Read(stream);
    if (const std::string rest = stream->cutter.Rest(); !rest.empty()) Take(stream->as, rest);
    console_->Progress(stream->as, place_.name, "");
    stream->watch.Reset();
  }
  if (beats_.watch.active()) ReadBeats();
  beats_.watch.Reset();
}

RankEnd RankProcess::Finish(int status, bool stopping, bool killed) {
  RankEnd end;
  end.rank = place_.rank;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
  // One that fails by itself while the others are told to stop was not stopped by us.
  end.by_us = stopping && (end.signal != 0 || end.ok());
  end.dumped = killed;
  end.trouble = words_.trouble();
  end.since_ms = end.trouble == Trouble::kNone ? SinceStart() : words_.trouble_ms();
  if (!end.ok()) {
    end.words = words_.Words();
    end.advice = words_.advice();
    end.port_stolen = words_.port_stolen();
  }
  return end;
}

}  // namespace tensord::train
