// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "doctor/advise/observation.h"

namespace tensord::doctor {

// From here on a CPU or a wait is worth naming.
inline constexpr double kCpuBusy = 0.85;     // Share.
inline constexpr double kPressureHigh = 20;  // Percent of the time with somebody waiting.

// The stage of the input pipeline that is slow, and what mends it.
struct Stage {
  std::string name;
  std::string fix;
};

// By TensorFlow's own times of the stages where the ranks tell them, of the rank that waits most;
// else guessed from what the CPUs and the disks do.
Stage SlowStage(const Observation& seen);

}  // namespace tensord::doctor
