// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/machine.h"

#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/text.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

namespace tensord::doctor {
namespace {

std::map<std::string, std::string> EnvironmentOfThisProcess() {
  std::map<std::string, std::string> variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable(*at);
    const size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return variables;
}

std::optional<DiskSpace> SpaceAt(const std::string& path) {
  struct statvfs space {};
  if (statvfs(path.c_str(), &space) != 0) return std::nullopt;
  return DiskSpace{.bytes = space.f_blocks * space.f_frsize,
                   .free = space.f_bavail * space.f_frsize};
}

int LandlockAbi() {
  constexpr uint32_t kVersionFlag = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersionFlag);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

std::optional<bool> ClockSynchronised() {
  timex state{};  // Reads only.
  const int answer = adjtimex(&state);
  if (answer < 0) return std::nullopt;
  return answer != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

}  // namespace

std::optional<std::string> Machine::Read(std::string_view path) const {
  std::ifstream file(base::Cat(root, path), std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes;
  char part[8192];
  while (bytes.size() < kFileBytesMax) {
    file.read(part, sizeof(part));
    if (file.gcount() <= 0) break;
    bytes.append(part, static_cast<size_t>(file.gcount()));
  }
  return bytes;
}

std::string Machine::ReadOr(std::string_view path, std::string_view otherwise) const {
  return Read(path).value_or(std::string(otherwise));
}

std::vector<std::string> Machine::List(std::string_view path) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(base::Cat(root, path), error);
  for (const std::filesystem::directory_iterator end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

bool Machine::Exists(std::string_view path) const {
  std::error_code error;
  return std::filesystem::exists(base::Cat(root, path), error);
}

const std::string* Machine::Variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : &found->second;
}

Machine FilesOfThisMachine() {
  Machine machine;
  machine.environment = EnvironmentOfThisProcess();
  machine.user = geteuid();
  machine.wall_time = base::WallTime();
  machine.disk_space = SpaceAt;
  return machine;
}

Machine ThisMachine(const std::string& library_directory) {
  Machine machine = FilesOfThisMachine();
  machine.landlock_abi = LandlockAbi();
  machine.clock_synchronised = ClockSynchronised();
  machine.gpus = nvml::ReadGpus();
  machine.places = engine::PlacesOfThisProcess(library_directory);
  return machine;
}

}  // namespace tensord::doctor
