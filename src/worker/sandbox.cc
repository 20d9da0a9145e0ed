// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"
#include "channel/segment.h"
#include "worker/landlock.h"
#include "worker/last_words.h"
#include "worker/linked_files.h"
#include "worker/privileges.h"
#include "worker/probe.h"
#include "worker/syscall_filter.h"

namespace tensord::worker {
namespace {

constexpr uint64_t kProbedBytes = 4096;  // Of shared memory for the probe.

// Shared libraries that are opened late, and what describes the machine.
constexpr const char* kSystemPlaces[] = {"/lib",
                                         "/lib64",
                                         "/usr/lib",
                                         "/usr/lib64",
                                         "/usr/local/lib",
                                         "/etc/ld.so.cache",
                                         "/proc/self",
                                         "/proc/cpuinfo",
                                         "/proc/meminfo",
                                         "/sys/devices/system",
                                         "/sys/fs/cgroup",
                                         "/dev/null",
                                         "/dev/urandom",
                                         "/etc/localtime",
                                         "/usr/share/zoneinfo"};

// The library, and the libraries beside it that it may need in turn. Not all that lies there: data
// beside an op library may be somebody else's.
void AddLibrary(const std::string& library, std::vector<std::string>* places) {
  constexpr size_t kBesideMax = 256;  // A rule each; a package has some ten.
  places->push_back(library);
  const std::string directory = library.substr(0, library.rfind('/') + 1);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(directory.c_str()), closedir);
  if (listing == nullptr) return;
  for (size_t beside = 0; beside < kBesideMax;) {
    const dirent* entry = readdir(listing.get());
    if (entry == nullptr) return;
    const std::string_view name(entry->d_name);
    if (name.find(".so") == std::string_view::npos) continue;
    places->push_back(base::Cat(directory, name));
    ++beside;
  }
}

}  // namespace

std::vector<std::string> ReadablePlaces(const std::string& runtime_directory,
                                        const channel::LoadRecord& record) {
  std::vector<std::string> places = {record.directory, runtime_directory};
  for (const std::string& library : record.op_libraries) AddLibrary(library, &places);
  places.insert(places.end(), std::begin(kSystemPlaces), std::end(kSystemPlaces));
  const char* path = std::getenv("LD_LIBRARY_PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) places.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return places;
}

void Sandbox::AwaitAdoption() {
  char unused = 0;
  while (read(parts_.adopted.get(), &unused, 1) < 0 && errno == EINTR) continue;
  parts_.adopted.Reset();
}

void Sandbox::LiveWithSupervisor() const {
  if (DieWith(parts_.supervisor)) return;
  std::fprintf(stderr, "tensord-worker: the supervisor (%d) is gone\n", parts_.supervisor);
  _exit(0);
}

// The order matters: each step takes a right that a later one does not need.
void Sandbox::Confine(const channel::LoadRecord& record, Observed* observed,
                      std::vector<std::string>* lines) {
  const auto add = [lines](Layer layer) {
    lines->push_back(std::move(layer.line));
    return layer.holds;
  };
  observed->no_new_privileges = add(ForbidNewPrivileges());
  observed->own_network = add(LeaveNetwork());
  observed->own_user = add(BecomeUser(record.sandbox_user));
  observed->resource_limits = add(LimitResources());
  std::vector<std::string> places = ReadablePlaces(parts_.runtime_directory, record);
  LinkedFiles linked = FindLinkedFiles(record.directory);
  std::ranges::move(linked.places, std::back_inserter(places));
  add(RestrictFiles(places, &observed->landlock_abi));
  for (const std::string& refused : linked.refused) {
    lines->push_back(base::Cat("links: NOT followed: ", refused));
  }
  LiveWithSupervisor();
  // Something whose size and openness could be tampered with, as those that the front made.
  const auto memory = channel::RequestSegment::Create(kProbedBytes);
  add(RestrictSystemCalls(parts_.channel_fd));
  const absl::Time begun = base::MonotonicClock().Now();
  observed->attempts = TryForbiddenActs(record.directory, places, memory.ok() ? memory->fd() : -1);
  const absl::Duration spent = base::MonotonicClock().Now() - begun;
  std::ranges::move(Summarize(observed->attempts, spent), std::back_inserter(*lines));
}

Confined Sandbox::BeforeLoad(const channel::LoadRecord& record) {
  enabled_ = record.sandbox;
  Confined confined{.lines = {}, .grade = {}, .confined = enabled_, .status = absl::OkStatus()};
  AwaitAdoption();
  Observed observed;
  if (enabled_) {
    Confine(record, &observed, &confined.lines);
  } else {
    confined.lines.emplace_back("sandbox: off, because the operator said so");
    LiveWithSupervisor();
  }
  confined.grade = GradeOf(observed);
  for (const std::string& line : confined.lines) {
    if (line.find("not applied") == std::string::npos && line.find("NOT") == std::string::npos) {
      continue;
    }
    std::fprintf(stderr, "tensord-worker: sandbox: %s\n", line.c_str());
  }
  if (!enabled_ || !record.sandbox_enforced) return confined;
  const std::string missing = MissingOf(observed, record.accept_weak_files);
  if (!missing.empty()) {
    confined.status = absl::FailedPreconditionError(
        base::Cat("--sandbox=enforce: this kernel or container does not allow the least that a "
                  "model is confined with: ",
                  missing,
                  ". Allow it (`tensord doctor` says how), or start with --sandbox=best-effort, "
                  "which goes on without and says so"));
  }
  return confined;
}

std::vector<std::string> Sandbox::AfterLoad() {
  if (!enabled_) return {};
  return {DropCapabilities()};
}

channel::SealedRecord Sandbox::Seal() {
  if (!enabled_) {
    return {.status = absl::FailedPreconditionError("the sandbox is off"), .report = {}};
  }
  // For the process's life.
  AnswerForbiddenCalls(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  // The kernel applies this to the calling thread and those it makes, which the filter has no need
  // of: it refuses to name files in all of them.
  const Layer files = RestrictFiles({});
  const Layer calls = SealSystemCalls(parts_.channel_fd);
  if (!calls.holds) {
    return {.status = absl::FailedPreconditionError(calls.line), .report = {}};
  }
  return {.status = absl::OkStatus(),
          .report = base::Cat(
              "stage 2: ", calls.line, "; ",
              files.holds ? "landlock: no file at all, in the thread that sealed" : files.line)};
}

}  // namespace tensord::worker
