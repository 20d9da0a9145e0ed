// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/lane.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "models/check_models.h"

namespace tensord::models {
namespace {

constexpr uint32_t kBaseEvents = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr uint32_t kFileEvents = IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR;

// Asks the kernel to tell of changes: in the base path, and where files are still missing. What it
// refuses (limits, file systems without it) is found by looking.
std::vector<std::pair<int, bool>> AddWatches(int inotify, const std::string& path,
                                             const Listing& listing) {
  constexpr int kIncompleteWatchedMax = 16;  // Copied at the same time; a watch costs 1 KB.
  std::vector<std::pair<int, bool>> watches;
  auto add = [&](const std::string& what, uint32_t events, bool base) {
    const int watch = inotify_add_watch(inotify, what.c_str(), events);
    if (watch >= 0) watches.emplace_back(watch, base);
  };
  add(path, kBaseEvents, true);
  int incomplete = 0;
  for (const FoundVersion& found : listing.versions) {
    if (found.complete || found.fingerprint == 0) continue;
    if (++incomplete > kIncompleteWatchedMax) break;
    add(found.directory, kFileEvents, false);
    add(found.directory + "/variables", kFileEvents, false);
  }
  return watches;
}

std::optional<unsigned> Number(std::string_view text) {
  unsigned number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// The nth word of a line.
std::string_view Word(std::string_view line, int nth) {
  for (; nth > 0; --nth) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return {};
    line.remove_prefix(space + 1);
  }
  return line.substr(0, line.find(' '));
}

}  // namespace

void Mailbox::Close() {
  base::MutexLock lock(&mu_);
  loop_ = nullptr;
}

void Mailbox::Post(loop::Task task) {
  base::MutexLock lock(&mu_);
  if (loop_ != nullptr && !loop_->Post(std::move(task))) return;
}

Lane::Lane(std::shared_ptr<Mailbox> mailbox, std::unique_ptr<VersionSource> source,
           std::shared_ptr<const base::UniqueFd> inotify)
    : shared_(std::make_shared<Shared>()) {
  shared_->mailbox = std::move(mailbox);
  shared_->source = std::move(source);
  shared_->inotify = std::move(inotify);
  shared_->wake.Reset(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  TENSORD_CHECK(shared_->wake.valid());
  thread_ = std::thread([shared = shared_] { Run(shared); });
}

Lane::~Lane() {
  {
    base::MutexLock lock(&shared_->mu);
    shared_->stop = true;
    shared_->jobs.clear();
  }
  eventfd_write(shared_->wake.get(), 1);
  if (waiting_ == 0) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Lane::Add(SourceQuery query, Done done) {
  ++waiting_;
  // The answer may come after this lane is gone.
  auto counted = [this, alive = std::weak_ptr<bool>(alive_),
                  done = std::move(done)](Look look) mutable {
    if (alive.expired()) return;
    --waiting_;
    done(std::move(look));
  };
  {
    base::MutexLock lock(&shared_->mu);
    shared_->jobs.push_back({.query = std::move(query), .done = std::move(counted)});
  }
  eventfd_write(shared_->wake.get(), 1);
}

void Lane::Run(const std::shared_ptr<Shared>& shared) {
  for (;;) {
    eventfd_t count = 0;
    if (eventfd_read(shared->wake.get(), &count) != 0 && errno != EINTR) return;
    std::optional<Job> job;
    {
      base::MutexLock lock(&shared->mu);
      if (shared->stop) return;
      if (shared->jobs.empty()) continue;
      job = std::move(shared->jobs.front());
      shared->jobs.pop_front();
    }
    Look look;
    look.listing = shared->source->List(job->query);
    const std::string path = LocalPath(job->query.base_path);
    struct stat found {};
    if (look.listing.ok() && stat(path.c_str(), &found) == 0) {
      look.device = found.st_dev;
      if (shared->inotify->valid()) {
        look.watches = AddWatches(shared->inotify->get(), path, *look.listing);
      }
    }
    shared->mailbox->Post(
        [done = std::move(job->done), look = std::move(look)]() mutable { done(std::move(look)); });
  }
}

dev_t MountedDevice(const std::string& path, std::string_view mountinfo) {
  dev_t device = 0;
  size_t longest = 0;
  while (!mountinfo.empty()) {
    const std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(line.size() + 1, mountinfo.size()));
    // 36 35 98:0 /root /mount/point rw ...
    const std::string_view numbers = Word(line, 2);
    const std::string_view point = Word(line, 4);
    const size_t colon = numbers.find(':');
    if (colon == std::string_view::npos || point.empty() || !path.starts_with(point)) continue;
    const bool inside = point == "/" || path.size() == point.size() || path[point.size()] == '/';
    const std::optional<unsigned> major_number = Number(numbers.substr(0, colon));
    const std::optional<unsigned> minor_number = Number(numbers.substr(colon + 1));
    if (!inside || point.size() < longest || !major_number || !minor_number) continue;
    longest = point.size();
    device = makedev(*major_number, *minor_number);
  }
  return device;
}

}  // namespace tensord::models
