// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/checks/checks.h"

namespace tensord::doctor {

Findings CheckAll(const Machine& machine, const Question& question) {
  Findings all;
  const auto add = [&all](Findings more) {
    for (Finding& finding : more) all.push_back(std::move(finding));
  };
  add(CheckCpu(machine));
  add(CheckThreads(machine));
  add(CheckMemory(machine));
  add(CheckLimits(machine));
  add(CheckSandbox(machine));
  add(CheckRuntime(machine));
  add(CheckGpus(machine));
  add(CheckEnvironment(machine));
  add(CheckTfConfig(machine));
  add(CheckPorts(machine, question.ports));
  add(CheckClock(machine));
  if (question.models.empty()) add(CheckDisk(machine, "."));
  for (const ModelQuestion& model : question.models) {
    add(CheckDisk(machine, model.directory));
    add(CheckModel(machine, model));
  }
  return all;
}

}  // namespace tensord::doctor
