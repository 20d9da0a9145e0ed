// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdlib>
#include <string>

#include "doctor/machine.h"

namespace tensord::doctor::testing {

inline constexpr char kGolden[] = TENSORD_SOURCE_DIR "/tests/golden/doctor/";

// A machine whose files lie in a directory of tests/golden/doctor.
inline Machine MachineOf(const std::string& name) {
  Machine machine;
  machine.root = kGolden + name;
  machine.user = 0;
  machine.landlock_abi = 7;
  machine.clock_synchronised = true;
  machine.wall_time = absl::FromUnixSeconds(1'790'000'000);
  machine.disk_space = [](const std::string&) {
    return DiskSpace{.bytes = 100ull << 30, .free = 40ull << 30};
  };
  machine.gpus.problem = "no NVIDIA driver here (libnvidia-ml.so.1 is not installed)";
  machine.places.virtual_env = machine.root + "/venv";
  machine.places.system_roots = {};
  return machine;
}

// What the fake libnvidia-ml.so.1 says by a scenario's file.
inline nvml::Gpus GpusOf(const std::string& scenario) {
  setenv("TENSORD_FAKE_NVML", scenario.c_str(), 1);
  return nvml::ReadGpus();
}

// Two GPUs, a quota, no capabilities, a driver that is a little old.
inline Machine GpuMachine() {
  Machine machine = MachineOf("gpu_machine");
  machine.user = 1000;
  machine.landlock_abi = 3;
  machine.clock_synchronised = false;
  machine.gpus = GpusOf(std::string(kGolden) + "gpu_machine/nvml.txt");
  return machine;
}

}  // namespace tensord::doctor::testing
