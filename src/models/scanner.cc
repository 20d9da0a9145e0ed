// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/scanner.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "models/check_models.h"
#include "models/lane.h"
#include "models/local_source.h"
#include "obs/log.h"

namespace tensord::models {
namespace {

constexpr absl::Duration kGather = absl::Milliseconds(50);  // One look for a burst of changes.
constexpr size_t kRenamedMax = 1000;  // Names between two looks; those forgotten must be quiet.

std::string ReadMountTable() {
  std::ifstream table("/proc/self/mountinfo");
  return {std::istreambuf_iterator<char>(table), {}};
}

}  // namespace

class Scanner::Impl {
 public:
  Impl(loop::EventLoop& loop, absl::Duration poll_period, MakeSource make_source, Report report)
      : loop_(loop),
        poll_period_(poll_period),
        make_source_(std::move(make_source)),
        report_(std::move(report)),
        mailbox_(std::make_shared<Mailbox>(&loop)) {
    const int inotify = polls() ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
    inotify_ = std::make_shared<base::UniqueFd>(inotify);
    if (inotify < 0) return;
    inotify_watch_ = loop_.Add(inotify, EPOLLIN, [this](uint32_t) { ReadEvents(); });
  }

  ~Impl() {
    mailbox_->Close();
    loop_.Cancel(timer_);
  }

  void Watch(std::vector<WatchedPath> paths) {
    std::map<std::string, Path> before = std::exchange(paths_, {});
    std::optional<std::string> mounts;
    for (WatchedPath& watched : paths) {
      const auto old = before.find(watched.model);
      const bool same_place =
          old != before.end() && old->second.query.base_path == watched.query.base_path;
      Path path;
      if (same_place) path = std::move(old->second);
      if (!same_place) {
        path.id = ++last_id_;
        if (!mounts.has_value()) mounts = ReadMountTable();
        path.device = MountedDevice(LocalPath(watched.query.base_path), *mounts);
      }
      if (!same_place || path.query != watched.query || path.look != watched.look || !polls()) {
        path.next = loop_.Now();
        path.report_all = true;
        path.again = path.looking;  // What is under way began before.
      }
      path.look = watched.look;
      path.query = std::move(watched.query);
      paths_[watched.model] = std::move(path);
    }
    ForgetWatches();
    Turn();
  }

 private:
  struct Path {
    uint64_t id = 0;  // Of this model and base path.
    SourceQuery query;
    uint64_t look = 0;  // WatchedPath::look.
    dev_t device = 0;
    absl::Time next = absl::InfiniteFuture();  // The next look.
    bool looking = false;
    bool again = false;      // Something happened meanwhile.
    bool stuck = false;      // The look does not come back, and that was said.
    bool report_all = true;  // Also if nothing differs from the last report.
    std::optional<absl::StatusOr<Listing>> reported;
    absl::Time changed;             // When a listing last differed from the one before.
    std::set<std::string> renamed;  // Since the look that is under way, or the last one.
    std::set<int> watches;          // inotify's numbers; an inode has one.
    std::set<int> base_watches;
  };
  struct LaneState {
    std::unique_ptr<Lane> lane;
    absl::Time progress;  // When a look began with none waiting, or the last one came back.
  };

  bool polls() const { return poll_period_ > absl::ZeroDuration(); }
  absl::Duration settle() const {
    return polls() ? std::min(poll_period_, limits::kSettleEvery) : limits::kSettleEvery;
  }

  // Starts the looks that are due and sets the timer for what comes next.
  void Turn() {
    const absl::Time now = loop_.Now();
    absl::Time next = absl::InfiniteFuture();
    for (auto& [model, path] : paths_) {
      if (path.next <= now && !path.looking) StartLook(model, &path);
      if (!path.looking) next = std::min(next, path.next);
    }
    for (auto& [device, state] : lanes_) {
      if (state.lane->waiting() == 0) continue;
      const absl::Time stuck = state.progress + limits::kScanStuckAfter;
      if (stuck <= now) {
        TellStuck(device, now - state.progress);
      } else {
        next = std::min(next, stuck);
      }
    }
    loop_.Cancel(timer_);
    timer_ = next == absl::InfiniteFuture() ? 0 : loop_.At(next, [this] { Turn(); });
  }

  // One lane for each file system; when there are too many, they share.
  LaneState& LaneOf(dev_t device) {
    const auto at = lanes_.find(device);
    if (at != lanes_.end()) return at->second;
    if (lanes_.size() >= limits::kScannerThreadsMax) {
      const auto free = std::ranges::min_element(
          lanes_, {}, [](const auto& entry) { return entry.second.lane->waiting(); });
      return free->second;
    }
    LaneState& state = lanes_[device];
    state.lane = std::make_unique<Lane>(mailbox_, make_source_(), inotify_);
    return state;
  }

  void StartLook(const std::string& model, Path* path) {
    LaneState& state = LaneOf(path->device);
    if (state.lane->waiting() == 0) state.progress = loop_.Now();
    path->looking = true;
    path->again = false;
    path->next = absl::InfiniteFuture();
    SourceQuery query = path->query;
    query.renamed = path->renamed;
    auto renamed = query.renamed;
    state.lane->Add(std::move(query),
                    [this, model, id = path->id, renamed = std::move(renamed), &state](Look look) {
                      state.progress = loop_.Now();
                      const auto at = paths_.find(model);
                      if (at != paths_.end() && at->second.id == id)
                        Finish(model, renamed, std::move(look));
                      Turn();
                    });
  }

  void Finish(const std::string& model, const std::set<std::string>& renamed, Look look) {
    Path& path = paths_.at(model);
    path.looking = false;
    path.stuck = false;
    for (const std::string& name : renamed) path.renamed.erase(name);
    if (look.device != 0) path.device = look.device;
    const bool news = TakeWatches(look.watches, &path);
    const absl::Time now = loop_.Now();
    if (Differs(path, look.listing)) path.changed = now;
    // Whoever copies has given up when nothing came for so long.
    const bool unsettled = look.listing.ok() && look.listing->unsettled &&
                           now < path.changed + limits::kIncompleteWaitMax;
    // What changed before the kernel was asked to tell is found by one more look.
    if (path.again || news) {
      path.next = now + kGather;
    } else if (unsettled) {
      path.next = now + settle();
    } else if (polls()) {
      path.next = now + poll_period_;
    }
    Tell(model, &path, std::move(look.listing));
  }

  static bool Differs(const Path& path, const absl::StatusOr<Listing>& listing) {
    if (!path.reported.has_value() || path.reported->status() != listing.status()) return true;
    return listing.ok() && **path.reported != *listing;
  }

  void Tell(const std::string& model, Path* path, absl::StatusOr<Listing> listing) {
    if (!std::exchange(path->report_all, false) && !Differs(*path, listing)) return;
    path->reported = listing;
    report_(model, path->query.base_path, std::move(listing));
  }

  void TellStuck(dev_t device, absl::Duration waited) {
    std::vector<std::string> models;
    for (auto& [model, path] : paths_) {
      if (!path.looking || path.stuck || path.device != device) continue;
      path.stuck = true;
      models.push_back(model);
    }
    for (const std::string& model : models) {
      const auto at = paths_.find(model);
      if (at == paths_.end()) continue;
      Tell(model, &at->second,
           absl::UnavailableError(base::Cat("looking at base path ", at->second.query.base_path,
                                            " has not come back for ", absl::ToInt64Seconds(waited),
                                            " s: its file system hangs; new versions are not seen "
                                            "until it answers")));
    }
  }

  // True when one of them is new.
  bool TakeWatches(const std::vector<std::pair<int, bool>>& watches, Path* path) {
    std::set<int> now;
    bool news = false;
    path->base_watches.clear();
    for (const auto& [watch, is_base] : watches) {
      now.insert(watch);
      if (is_base) path->base_watches.insert(watch);
      news |= !path->watches.contains(watch);
    }
    path->watches = std::move(now);
    for (const int watch : path->watches) known_watches_.insert(watch);
    ForgetWatches();
    return news;
  }

  void ForgetWatches() {
    std::set<int> used;
    for (const auto& [model, path] : paths_) used.insert(path.watches.begin(), path.watches.end());
    std::erase_if(known_watches_, [&](int watch) {
      if (used.contains(watch)) return false;
      inotify_rm_watch(inotify_->get(), watch);
      return true;
    });
  }

  void ReadEvents() {
    alignas(inotify_event) char buffer[16 * 1024];
    for (;;) {
      const ssize_t got = read(inotify_->get(), buffer, sizeof(buffer));
      if (got <= 0) break;
      for (ssize_t at = 0; at < got;) {
        inotify_event event;
        std::memcpy(&event, buffer + at, sizeof(event));
        const char* name = buffer + at + sizeof(event);
        HandleEvent(event, event.len == 0 ? "" : std::string(name, strnlen(name, event.len)));
        at += static_cast<ssize_t>(sizeof(event) + event.len);
      }
    }
    Turn();
  }

  void HandleEvent(const inotify_event& event, const std::string& name) {
    const bool lost = (event.mask & IN_Q_OVERFLOW) != 0;
    if ((event.mask & IN_IGNORED) != 0) known_watches_.erase(event.wd);
    for (auto& [model, path] : paths_) {
      if (!lost && !path.watches.contains(event.wd)) continue;
      if ((event.mask & IN_IGNORED) != 0) {
        path.watches.erase(event.wd);
        path.base_watches.erase(event.wd);
      }
      if ((event.mask & IN_MOVED_TO) != 0 && path.base_watches.contains(event.wd)) {
        if (path.renamed.size() >= kRenamedMax) path.renamed.clear();
        path.renamed.insert(name);
      }
      path.again = true;
      path.next = std::min(path.next, loop_.Now() + kGather);
    }
  }

  loop::EventLoop& loop_;
  const absl::Duration poll_period_;
  MakeSource make_source_;
  Report report_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<const base::UniqueFd> inotify_;
  loop::EventLoop::Watch inotify_watch_;

  uint64_t last_id_ = 0;
  std::map<std::string, Path> paths_;  // By model.
  std::map<dev_t, LaneState> lanes_;
  std::set<int> known_watches_;
  loop::TimerId timer_ = 0;
};

Scanner::Scanner(loop::EventLoop& loop, absl::Duration poll_period, MakeSource make_source,
                 Report report)
    : impl_(std::make_unique<Impl>(loop, poll_period, std::move(make_source), std::move(report))) {}
Scanner::~Scanner() = default;

void Scanner::Watch(std::vector<WatchedPath> paths) { impl_->Watch(std::move(paths)); }

std::unique_ptr<VersionSource> MakeLocalSource(absl::Duration poll_period) {
  LocalSource::Options options;
  if (poll_period > absl::ZeroDuration()) {
    options.quiet = std::min(poll_period, limits::kSettleEvery);
  }
  return std::make_unique<LocalSource>(std::move(options));
}

}  // namespace tensord::models
