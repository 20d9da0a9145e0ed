// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

// The first ABI of Landlock that also restricts TCP, and the first that restricts signals.
constexpr int kAbiTcp = 4;
constexpr int kAbiSignals = 6;

struct Layers {
  bool filter = false;  // seccomp with programs.
  int landlock = 0;
  bool users = false;     // Each worker can get a user of its own.
  bool networks = false;  // And a network of its own.
};

Layers ReadLayers(const Machine& machine) {
  Layers layers;
  const std::string actions = machine.ReadOr("/proc/sys/kernel/seccomp/actions_avail");
  layers.filter = actions.find("errno") != std::string::npos;
  layers.landlock = machine.landlock_abi;
  const std::string status = machine.ReadOr("/proc/self/status");
  // Root in a container may lack the right to change users, capabilities 6 and 7, and to make
  // namespaces, capability 21.
  int64_t capabilities = 0;
  for (const char c : ValueOf(status, "CapEff")) {
    const int digit = c >= 'a' ? c - 'a' + 10 : c - '0';
    capabilities = ((capabilities << 4) | (digit & 15)) & 0xffffffffff;
  }
  layers.users = machine.user == 0 && ((capabilities >> 6) & 3) == 3;
  layers.networks = ((capabilities >> 21) & 1) == 1;
  return layers;
}

Finding Grade(const Layers& layers) {
  Finding finding{.id = "sandbox.grade"};
  const bool files = layers.landlock > 0;
  if (layers.filter && layers.landlock >= kAbiSignals && layers.users && layers.networks) {
    finding.seen =
        "workers reach grade A: own users and networks, Landlock for files, TCP and signals, "
        "seccomp";
    return finding;
  }
  if (layers.filter && files) {
    finding.seen = "workers reach grade B: Landlock and seccomp";
    finding.level = Level::kInfo;
    finding.why = !layers.users ? "all workers run under the server's user"
                  : layers.landlock < kAbiSignals
                      ? "this kernel's Landlock does not cover TCP or signals; seccomp refuses "
                        "both all the same"
                      : "workers are in the server's network; seccomp refuses to use it all the "
                        "same";
    finding.action = layers.users ? "" : "start tensord as root to give each worker its own user";
    return finding;
  }
  finding.level = Level::kWarning;
  finding.why = "a model is a program: what it may do rests on what is left";
  if (!layers.filter && !files) {
    finding.seen = "workers reach grade D: neither seccomp nor Landlock";
    finding.level = Level::kError;
    finding.action =
        "use a kernel from 5.13 on that has both; or serve only models that you trust as you "
        "trust programs, with --sandbox=best-effort";
    return finding;
  }
  finding.seen = base::Cat("workers reach grade C: ",
                           files ? "Landlock without seccomp" : "seccomp without Landlock");
  finding.action = files
                       ? "allow seccomp in the container's profile; until then no model is loaded "
                         "without --sandbox=best-effort"
                       : "boot with lsm=landlock,... on a kernel from 5.13 on; until then a model "
                         "can read every file that its user can, and none is loaded without "
                         "--accept_weak_sandbox=files";
  return finding;
}

}  // namespace

Findings CheckSandbox(const Machine& machine) {
  const Layers layers = ReadLayers(machine);
  Findings findings = {Grade(layers)};
  findings.push_back({.id = "sandbox.landlock",
                      .level = layers.landlock >= kAbiTcp ? Level::kOk : Level::kInfo,
                      .seen = layers.landlock == 0 ? "the kernel has no Landlock, or it is off"
                                                   : base::Cat("Landlock ABI ", layers.landlock)});
  findings.push_back(
      {.id = "sandbox.seccomp",
       .level = layers.filter ? Level::kOk : Level::kInfo,
       .seen = layers.filter ? "seccomp filters are there" : "the kernel has no seccomp filters"});
  findings.push_back(
      {.id = "sandbox.users",
       .level = layers.users ? Level::kOk : Level::kInfo,
       .seen = layers.users ? "started as root, each worker gets its own user"
                            : base::Cat("workers keep the server's user (", machine.user, ")")});
  return findings;
}

}  // namespace tensord::doctor
