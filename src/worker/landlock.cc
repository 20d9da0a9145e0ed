// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/text.h"
#include "base/unique_fd.h"

// The kernel's own numbers (include/uapi/linux/landlock.h); the headers of older distributions know
// only the first ABIs.
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

namespace tensord::worker {
namespace {

constexpr uint32_t kVersionFlag = 1;  // LANDLOCK_CREATE_RULESET_VERSION
constexpr int kPathBeneath = 1;       // LANDLOCK_RULE_PATH_BENEATH
constexpr uint64_t kReadFile = 1u << 2;
constexpr uint64_t kReadDirectory = 1u << 3;
constexpr uint64_t kFirstFileRights = (1u << 13) - 1;  // Execute, write, read, remove, make, ...
constexpr uint64_t kRefer = 1u << 13;
constexpr uint64_t kTruncate = 1u << 14;
constexpr uint64_t kIoctlDevice = 1u << 15;
constexpr uint64_t kBindAndConnectTcp = 3;
constexpr uint64_t kAbstractSocketsAndSignals = 3;

struct RulesetAttributes {
  uint64_t files;
  uint64_t network;
  uint64_t scopes;
};

struct [[gnu::packed]] PathBeneathAttributes {
  uint64_t allowed;
  int32_t fd;
};

// Gives the number of rules added.
int AddRules(int ruleset, std::span<const std::string> paths) {
  int added = 0;
  for (const std::string& path : paths) {
    const base::UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (!fd.valid() || fstat(fd.get(), &status) != 0) continue;
    const uint64_t allowed = S_ISDIR(status.st_mode) ? kReadFile | kReadDirectory : kReadFile;
    const PathBeneathAttributes rule{.allowed = allowed, .fd = fd.get()};
    if (syscall(SYS_landlock_add_rule, ruleset, kPathBeneath, &rule, 0) == 0) ++added;
  }
  return added;
}

Layer NotApplied(const char* step) {
  return {.holds = false,
          .line = base::Cat("landlock: not applied (", step, ": ", std::strerror(errno), ")")};
}

}  // namespace

LandlockRights RightsOfAbi(int abi) {
  LandlockRights rights;
  if (abi >= 1) rights.files = kFirstFileRights;
  if (abi >= 2) rights.files |= kRefer;
  if (abi >= 3) rights.files |= kTruncate;
  if (abi >= 4) rights.network = kBindAndConnectTcp;
  if (abi >= 5) rights.files |= kIoctlDevice;
  if (abi >= 6) rights.scopes = kAbstractSocketsAndSignals;
  return rights;
}

Layer RestrictFiles(std::span<const std::string> paths, int* enforced_abi) {
  if (enforced_abi != nullptr) *enforced_abi = 0;
  const auto abi = static_cast<int>(syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersionFlag));
  if (abi < 1) return NotApplied("this kernel has none or it is off");
  const LandlockRights rights = RightsOfAbi(abi);
  const RulesetAttributes attributes{
      .files = rights.files, .network = rights.network, .scopes = rights.scopes};
  // An older kernel refuses a longer struct than it knows.
  const size_t size = abi >= 6 ? sizeof(attributes) : abi >= 4 ? 16 : 8;
  const base::UniqueFd ruleset(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0)));
  if (!ruleset.valid()) return NotApplied("cannot make a ruleset");
  const int rules = AddRules(ruleset.get(), paths);
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return NotApplied("cannot enforce the ruleset");
  }
  if (enforced_abi != nullptr) *enforced_abi = abi;
  return {
      .holds = true,
      .line = base::Cat("landlock: ABI ", abi, ", ", rules, " readable places, nothing writable",
                        rights.network != 0 ? "; no TCP" : "; TCP not covered",
                        rights.scopes != 0 ? "; no signals to others" : "; signals not covered")};
}

}  // namespace tensord::worker
