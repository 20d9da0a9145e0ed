// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace tensord::worker {

// One wall of the sandbox: whether it stands, and the report's line about it.
struct Layer {
  bool holds = false;
  std::string line;
};

}  // namespace tensord::worker
