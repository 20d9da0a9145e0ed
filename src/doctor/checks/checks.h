// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/machine.h"

// One function a subject, in a file of its own; each looks at nothing but its arguments.
namespace tensord::doctor {

Findings CheckCpu(const Machine& machine);      // Instruction sets.
Findings CheckThreads(const Machine& machine);  // Cores, NUMA, quota, against thread settings.
Findings CheckMemory(const Machine& machine);
Findings CheckLimits(const Machine& machine);   // ulimits.
Findings CheckSandbox(const Machine& machine);  // What workers will be confined with.
Findings CheckDisk(const Machine& machine, const std::string& directory);
Findings CheckRuntime(const Machine& machine);  // TensorFlow's libraries.
Findings CheckGpus(const Machine& machine);     // Driver, CUDA, cuDNN, boards.
Findings CheckEnvironment(const Machine& machine);
Findings CheckTfConfig(const Machine& machine);
Findings CheckPorts(const Machine& machine, const std::vector<int>& ports);
Findings CheckClock(const Machine& machine);

// A SavedModel's directory, or the directory of its versions.
struct ModelQuestion {
  std::string directory;
  std::vector<std::string> op_libraries = {};
};
Findings CheckModel(const Machine& machine, const ModelQuestion& question);

// What is to be looked at besides the machine itself.
struct Question {
  std::vector<ModelQuestion> models = {};
  std::vector<int> ports = {8500, 8501};  // tensorflow_model_server's.
};
Findings CheckAll(const Machine& machine, const Question& question);

}  // namespace tensord::doctor
