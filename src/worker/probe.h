// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace tensord::worker {

enum class ActKind : uint8_t { kReadFile, kWriteFile, kNetwork, kProcess, kKernel };

// What came of one thing that a confined worker must not be able to do.
struct Attempt {
  std::string act;  // "open /etc/passwd", "make a socket (IPv4)".
  bool refused = false;
  std::string seen;  // "EACCES", or what was possible.
  ActKind kind = ActKind::kKernel;
};

// Tries them all, in this process, so that nothing needs to be taken on trust. Harmless where it
// succeeds: what is opened is closed, what is made is removed, nobody is signalled.
// `readable`: places that the worker may read; no act asks whether it can. `memory_fd`: memory of
// the kind that it shares with the front, or -1.
std::vector<Attempt> TryForbiddenActs(std::string_view model_directory,
                                      std::span<const std::string> readable, int memory_fd);

// "probe: 34 of 34 forbidden acts refused, in 90 us", and one line for each act that was possible.
std::vector<std::string> Summarize(const std::vector<Attempt>& attempts, absl::Duration spent);

}  // namespace tensord::worker
