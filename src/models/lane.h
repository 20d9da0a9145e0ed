// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "loop/event_loop.h"
#include "models/source.h"

namespace tensord::models {

// The way from the scanner's threads back to its loop, which may be closed while a thread hangs.
// Threads: Post from any.
class Mailbox {
 public:
  explicit Mailbox(loop::EventLoop* loop) : loop_(loop) {}
  void Close();
  // Dropped once closed, and by a loop that is overrun with messages.
  void Post(loop::Task task);

 private:
  base::Mutex mu_;
  loop::EventLoop* loop_ ABSL_GUARDED_BY(mu_);
};

// What one look brought back.
struct Look {
  absl::StatusOr<Listing> listing = Listing();
  dev_t device = 0;  // Of the base path; 0 when unknown.
  // Watch descriptors that tell of changes there; the second says that it is the base path itself.
  std::vector<std::pair<int, bool>> watches;
};

// A thread that looks at base paths, one after the other, and may hang with its file system.
//
// Threads: the loop's; `done` runs there too.
// Lifetime: the destructor waits for the thread only if it is idle. One that is busy ends when its
// file system lets it; until then it holds what it shares.
class Lane {
 public:
  using Done = absl::AnyInvocable<void(Look)>;

  // `inotify`: -1 for none.
  Lane(std::shared_ptr<Mailbox> mailbox, std::unique_ptr<VersionSource> source,
       std::shared_ptr<const base::UniqueFd> inotify);
  ~Lane();

  void Add(SourceQuery query, Done done);
  // Looks that have not come back.
  int waiting() const { return waiting_; }

 private:
  struct Job {
    SourceQuery query;
    Done done;
  };
  struct Shared {
    std::shared_ptr<Mailbox> mailbox;
    std::unique_ptr<VersionSource> source;  // The thread's.
    std::shared_ptr<const base::UniqueFd> inotify;
    base::UniqueFd wake;  // An eventfd that counts jobs.
    base::Mutex mu;
    std::deque<Job> jobs ABSL_GUARDED_BY(mu);
    bool stop ABSL_GUARDED_BY(mu) = false;
  };

  static void Run(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int waiting_ = 0;
  std::thread thread_;
};

// The device of the file system that `path` seems to be on, from the mount table alone, which never
// hangs; 0 when it cannot be told. Links are not followed.
dev_t MountedDevice(const std::string& path, std::string_view mountinfo);

}  // namespace tensord::models
