// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/sandbox.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string_view>

#include "base/text.h"
#include "worker/landlock.h"
#include "worker/linked_files.h"
#include "worker/privileges.h"
#include "worker/probe.h"
#include "worker/syscall_filter.h"

namespace tensord::worker {
namespace {

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

std::vector<std::string> Sandbox::BeforeLoad(const channel::LoadRecord& record) {
  enabled_ = record.sandbox;
  std::vector<std::string> lines;
  AwaitAdoption();
  if (enabled_) {
    lines.push_back(ForbidNewPrivileges());
    lines.push_back(BecomeUser(record.sandbox_user));
    lines.push_back(LimitResources());
    std::vector<std::string> places = ReadablePlaces(parts_.runtime_directory, record);
    LinkedFiles linked = FindLinkedFiles(record.directory);
    std::ranges::move(linked.places, std::back_inserter(places));
    lines.push_back(RestrictFiles(places));
    for (const std::string& refused : linked.refused) {
      lines.push_back(base::Cat("links: NOT followed: ", refused));
    }
  } else {
    lines.emplace_back("sandbox: off, because the operator said so");
  }
  if (!DieWith(parts_.supervisor)) {
    std::fprintf(stderr, "tensord-worker: the supervisor (%d) is gone\n", parts_.supervisor);
    _exit(0);
  }
  if (enabled_) {
    lines.push_back(RestrictSystemCalls(parts_.channel_fd));
    for (std::string& line : Summarize(TryForbiddenActs(record.directory))) {
      lines.push_back(std::move(line));
    }
  }
  for (const std::string& line : lines) {
    if (line.find("not applied") == std::string::npos && line.find("NOT") == std::string::npos) {
      continue;
    }
    std::fprintf(stderr, "tensord-worker: sandbox: %s\n", line.c_str());
  }
  return lines;
}

std::vector<std::string> Sandbox::AfterLoad() {
  if (!enabled_) return {};
  return {DropCapabilities()};
}

}  // namespace tensord::worker
