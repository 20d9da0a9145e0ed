// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "doctor/nvml/gpus.h"
#include "engine/tensorflow/find_runtime.h"

namespace tensord::doctor {

struct DiskSpace {
  uint64_t bytes = 0;
  uint64_t free = 0;  // For this user.
};

// All that the checks may look at: files below a root, the environment, and the few answers that
// only the kernel or a library can give, as values. A test makes one of a directory.
struct Machine {
  std::string root;  // Stands before every path; empty for the real machine.
  std::map<std::string, std::string> environment;
  uint32_t user = 0;
  int landlock_abi = 0;                    // 0: the kernel has none.
  std::optional<bool> clock_synchronised;  // By the kernel; empty: it does not say.
  absl::Time wall_time;                    // The calendar.
  std::function<std::optional<DiskSpace>(const std::string& path)> disk_space;
  nvml::Gpus gpus;
  engine::RuntimePlaces places;
  // The ops that the runtime and these libraries know.
  std::function<absl::StatusOr<std::set<std::string>>(const std::vector<std::string>& libraries)>
      known_ops;

  // The file's bytes, at most kFileBytesMax; empty when it cannot be read.
  std::optional<std::string> Read(std::string_view path) const;
  std::string ReadOr(std::string_view path, std::string_view otherwise = "") const;
  // Names in the directory, sorted.
  std::vector<std::string> List(std::string_view path) const;
  bool Exists(std::string_view path) const;
  // Null when it is not set.
  const std::string* Variable(const std::string& name) const;
};

inline constexpr size_t kFileBytesMax = 16 << 20;  // /proc/cpuinfo of 512 CPUs has 1 MB.

// This machine. Opens NVML, so the process must not fork without exec any more.
Machine ThisMachine(const std::string& library_directory);

// Files and environment only, without NVML.
Machine FilesOfThisMachine();

}  // namespace tensord::doctor
