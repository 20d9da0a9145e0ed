// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/cpus.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

std::string Plural(int count, std::string_view noun) {
  return base::Cat(count, " ", noun, count == 1 ? "" : "s");
}

Finding Cores(const Cpus& cpus) {
  std::string seen = Plural(cpus.online, "CPU");
  if (cpus.cores > 0) {
    seen += base::Cat(" on ", Plural(cpus.cores, "core"),
                      cpus.smt() ? " (two threads a core)" : " (no SMT)");
  }
  Finding finding{.id = "cpu.cores", .level = Level::kInfo, .seen = std::move(seen)};
  if (cpus.smt()) {
    finding.why = "matrix arithmetic gains little from the second thread of a core";
    finding.action = base::Cat("for compute-bound models try TF_NUM_INTRAOP_THREADS=", cpus.cores);
  }
  return finding;
}

Finding Numa(const Cpus& cpus) {
  if (cpus.numa_nodes == 1) return {.id = "cpu.numa", .seen = "one NUMA node"};
  return {.id = "cpu.numa",
          .level = Level::kInfo,
          .seen = Plural(cpus.numa_nodes, "NUMA node"),
          .why = "a process whose threads and memory lie on different nodes loses bandwidth",
          .action =
              "run one server or one training rank a node, each under "
              "numactl --cpunodebind=N --membind=N"};
}

Finding Budget(const Cpus& cpus) {
  const int usable = cpus.usable();
  if (usable >= cpus.online) {
    return {.id = "cpu.budget", .seen = base::Cat("all ", Plural(usable, "CPU"), " may be used")};
  }
  const bool by_group = cpus.cgroup.has_value() && *cpus.cgroup < cpus.affinity;
  return {.id = "cpu.budget",
          .level = Level::kInfo,
          .seen = base::Cat(usable, " of ", cpus.online, " CPUs may be used (",
                            by_group ? "quota or cpuset of the cgroup" : "affinity mask", ")"),
          .why = by_group ? "TensorFlow makes its pools as large as the affinity mask and does not "
                            "see a quota: it is throttled. tensord sizes them by the quota"
                          : ""};
}

Finding Oversubscribed(const std::string& name, int64_t threads, int usable) {
  return {
      .id = base::Cat("threads.", name),
      .level = Level::kWarning,
      .seen = base::Cat(name, "=", threads, ", but only ", Plural(usable, "CPU"), " may be used"),
      .why = "more threads than CPUs wait for each other, and under a quota all are stopped",
      .action = base::Cat("unset it, or set it to ", usable)};
}

Finding Setting(const std::string& name, const std::string& text, const Cpus& cpus) {
  const std::optional<int64_t> threads = ToNumber(text);
  if (!threads.has_value() || *threads < 0) {
    return {.id = base::Cat("threads.", name),
            .level = Level::kError,
            .seen = base::Cat(name, "=", text, " is not a number"),
            .action = "unset it, or set it to a number of threads"};
  }
  if (name == "TF_NUM_INTEROP_THREADS" && *threads == 1) {
    return {.id = base::Cat("threads.", name),
            .level = Level::kWarning,
            .seen = base::Cat(name, "=1"),
            .why = "training with a parameter server hangs without a word when there is only one",
            .action = "set it to 4 for parameter servers, to 2 or more otherwise"};
  }
  if (*threads > cpus.usable()) return Oversubscribed(name, *threads, cpus.usable());
  return {.id = base::Cat("threads.", name),
          .seen = base::Cat(name, "=", *threads, *threads == 0 ? ": chosen by TensorFlow" : "")};
}

}  // namespace

Findings CheckThreads(const Machine& machine) {
  const Cpus cpus = ReadCpus(machine);
  Findings findings = {Cores(cpus), Numa(cpus), Budget(cpus)};
  for (const char* name : {"TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"}) {
    const std::string* text = machine.Variable(name);
    if (text != nullptr) {
      findings.push_back(Setting(name, *text, cpus));
    } else if (cpus.usable() < cpus.affinity) {
      findings.push_back(
          {.id = base::Cat("threads.", name),
           .level = Level::kWarning,
           .seen = base::Cat(name, " is not set under a quota of ", Plural(cpus.usable(), "CPU")),
           .why = base::Cat("scripts make ", Plural(cpus.affinity, "thread"),
                            " and are throttled; tensord's workers and `tensord train` set it"),
           .action = base::Cat("for your own scripts: export ", name, "=", cpus.usable())});
    }
  }
  if (const std::string* text = machine.Variable("OMP_NUM_THREADS"); text != nullptr) {
    findings.push_back({.id = "threads.OMP_NUM_THREADS",
                        .level = Level::kInfo,
                        .seen = base::Cat("OMP_NUM_THREADS=", *text),
                        .why = "TensorFlow's oneDNN uses TensorFlow's own threads: this changes "
                               "nothing there; it does for NumPy and for the zentf plugin"});
  }
  return findings;
}

}  // namespace tensord::doctor
