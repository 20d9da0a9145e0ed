// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "worker/layer.h"

namespace tensord::worker {

// What a kernel's Landlock can restrict, by its ABI number.
struct LandlockRights {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scopes = 0;
};
LandlockRights RightsOfAbi(int abi);

// From now on this thread and those it makes may read the files and list the directories at and
// below `paths`, and do nothing else with files; nor bind or connect TCP sockets, nor signal or
// reach abstract sockets of others, as far as the kernel knows how. Paths that do not exist are
// left out. Rules of before stay. `enforced_abi`, unless null: the ABI whose rights are restricted;
// 0: none. REQUIRES: no_new_privs is set.
Layer RestrictFiles(std::span<const std::string> paths, int* enforced_abi = nullptr);

}  // namespace tensord::worker
