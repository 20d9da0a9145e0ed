// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "doctor/advise/observation.h"
#include "doctor/finding.h"

namespace tensord::doctor {

// A run of the same program over more or less data.
struct TimedRun {
  double examples = 0;
  double seconds = 0;
};

// What holds the machine back, worst first: what was seen, why it matters, what to change first.
// Never empty: when nothing does, that is what it says.
Findings Decide(const Observation& seen);

// Whether more data takes proportionally longer, and so more GPUs or nodes would help. Empty with
// fewer than three runs.
Findings DecideGrowth(const std::vector<TimedRun>& runs);

// What a change of settings brought, model by model, by two recordings under the same load.
Findings MeasuredGain(const Observation& before, const Observation& after);

}  // namespace tensord::doctor
