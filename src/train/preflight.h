// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "train/messages.h"

// Whether machines fit together, decided before anything starts. Pure.
namespace tensord::train {

struct Findings {
  std::vector<std::string> errors = {};    // The job would fail, or give wrong results.
  std::vector<std::string> warnings = {};  // It may.
};

// Each text names the two machines and what to do. The first is the leader's; clock_ms is how far a
// machine's calendar is off the leader's.
Findings CompareNodes(const std::vector<NodeFacts>& nodes);

}  // namespace tensord::train
