// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <filesystem>

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr uint64_t kFreeMin = 2ull << 30;  // A new version of a common model beside the old one.

struct Mount {
  std::string point;
  std::string type;
  std::string options;
};

// The mount that holds an absolute path: the longest point that is a prefix, the last one mounted.
Mount MountOf(const std::string& mountinfo, const std::string& path) {
  Mount best;
  for (const std::string_view line : Split(mountinfo, "\n")) {
    const size_t dash = line.find(" - ");
    const auto words = Split(line, " ");
    if (dash == std::string_view::npos || words.size() < 6) continue;
    const std::string point(words[4]);
    const bool holds = point == "/" || path == point || path.starts_with(point + "/");
    if (!holds || point.size() < best.point.size()) continue;
    const auto after = Split(line.substr(dash + 3), " ");
    best = {.point = point,
            .type = std::string(after.empty() ? "?" : after[0]),
            .options = std::string(words[5])};
  }
  return best;
}

bool IsNetwork(std::string_view type) {
  for (const std::string_view name : {"nfs", "cifs", "smb", "fuse", "ceph", "lustre", "gpfs", "9p",
                                      "afs", "glusterfs", "beegfs", "virtiofs"}) {
    if (type.starts_with(name)) return true;
  }
  return false;
}

Finding FileSystem(const Mount& mount, const std::string& path) {
  Finding finding{.id = "disk.file_system",
                  .seen = base::Cat(path, " lies on ", mount.type.empty() ? "?" : mount.type, " (",
                                    mount.point, ")")};
  if (IsNetwork(mount.type)) {
    finding.level = Level::kInfo;
    finding.why =
        "no change notices come from other machines: new versions are found by listing, "
        "and a server that hangs delays them";
    finding.action =
        "rename finished versions into place; keep --file_system_poll_wait_seconds at "
        "some tens of seconds";
  } else if (mount.type == "overlay") {
    finding.level = Level::kInfo;
    finding.why = "the container's own layer: models there are lost with the container";
    finding.action = "mount a volume for models";
  } else if (mount.type == "tmpfs" || mount.type == "ramfs") {
    finding.level = Level::kInfo;
    finding.why = "models there take memory, and are gone after a restart";
  }
  return finding;
}

}  // namespace

Findings CheckDisk(const Machine& machine, const std::string& directory) {
  std::error_code error;
  const std::string path = std::filesystem::absolute(directory, error).lexically_normal().string();
  Findings findings = {FileSystem(MountOf(machine.ReadOr("/proc/self/mountinfo"), path), path)};
  const auto space = machine.disk_space ? machine.disk_space(path) : std::nullopt;
  if (!space.has_value()) {
    findings.push_back({.id = "disk.free",
                        .level = Level::kWarning,
                        .seen = base::Cat("the free space of ", path, " cannot be read"),
                        .action = "see that the directory exists and may be read"});
    return findings;
  }
  Finding free{.id = "disk.free",
               .seen = base::Cat(Bytes(space->free), " of ", Bytes(space->bytes), " free")};
  if (space->free < kFreeMin) {
    free.level = Level::kWarning;
    free.why = "a new version must lie beside the old one while they change places";
    free.action = "remove old versions";
  }
  findings.push_back(std::move(free));
  return findings;
}

}  // namespace tensord::doctor
