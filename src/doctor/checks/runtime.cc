// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "doctor/checks/checks.h"
#include "doctor/runtime_facts.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr std::string_view kServedVersion = "2.21";  // What tensord is tested with.

Finding Version(const RuntimeFacts& facts) {
  Finding finding{.id = "runtime.version"};
  if (facts.version.empty()) {
    finding.level = Level::kInfo;
    finding.seen = "the version is not told: no .dist-info lies beside the package";
    finding.action = "`tensord version` asks the library itself";
    return finding;
  }
  finding.seen = base::Cat("TensorFlow ", facts.version, " (wheel ", facts.wheel, ", ",
                           facts.cuda ? "with CUDA" : "CPU only", ")");
  if (CompareVersions(facts.version, kServedVersion) != 0) {
    finding.level = Level::kWarning;
    finding.why = base::Cat("tensord is tested with ", kServedVersion,
                            "; other versions may lack functions or behave otherwise");
    finding.action = base::Cat("pip install 'tensorflow-cpu==", kServedVersion, ".*'");
  }
  return finding;
}

}  // namespace

Findings CheckRuntime(const Machine& machine) {
  const RuntimeFacts facts = ReadRuntime(machine);
  if (facts.directory.empty()) {
    return {{.id = "runtime.found",
             .level = Level::kError,
             .seen = base::Cat("no TensorFlow runtime; looked at: ", Join(facts.looked_at, ", ")),
             .why = "tensord brings none of its own",
             .action = "pip install tensorflow-cpu==2.21.0 (or tensorflow[and-cuda]==2.21.0), then "
                       "activate that environment or set TENSORD_TENSORFLOW_DIR"}};
  }
  return {{.id = "runtime.found", .seen = base::Cat(facts.directory, " (", facts.why, ")")},
          Version(facts)};
}

}  // namespace tensord::doctor
