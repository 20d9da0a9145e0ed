// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/grade.h"

#include <algorithm>

#include "base/text.h"

namespace tensord::worker {
namespace {

constexpr int kAbiScopes = 6;  // The first ABI of Landlock that stops signals and abstract sockets.

// The first act of that kind that was possible.
const Attempt* FirstPossible(const Observed& observed, ActKind kind) {
  const auto at = std::ranges::find_if(
      observed.attempts, [kind](const Attempt& a) { return a.kind == kind && !a.refused; });
  return at == observed.attempts.end() ? nullptr : &*at;
}

bool AllRefused(const Observed& observed, ActKind kind) {
  return !observed.attempts.empty() && FirstPossible(observed, kind) == nullptr;
}

bool FilterHolds(const Observed& observed) {
  return AllRefused(observed, ActKind::kNetwork) && AllRefused(observed, ActKind::kProcess) &&
         AllRefused(observed, ActKind::kKernel);
}

bool FilesHold(const Observed& observed) {
  return AllRefused(observed, ActKind::kReadFile) && AllRefused(observed, ActKind::kWriteFile);
}

void Add(std::string_view what, std::string* missing) {
  if (!missing->empty()) *missing += "; ";
  *missing += what;
}

}  // namespace

std::string_view GradeOf(const Observed& observed) {
  const bool filter = FilterHolds(observed);
  const bool files = FilesHold(observed);
  if (!filter && !files) return "D";
  if (!filter || !files || !observed.no_new_privileges || !observed.resource_limits) return "C";
  const bool all = observed.own_user && observed.own_network && observed.landlock_abi >= kAbiScopes;
  return all ? "A" : "B";
}

std::string MissingOf(const Observed& observed, bool accept_weak_files) {
  constexpr std::pair<ActKind, std::string_view> kKinds[] = {
      {ActKind::kNetwork, "the network is not closed"},
      {ActKind::kProcess, "other processes can be reached"},
      {ActKind::kKernel, "system calls are not filtered"},
      {ActKind::kWriteFile, "files can be written"},
      {ActKind::kReadFile,
       "files outside the model's directory can be read, which --accept_weak_sandbox=files "
       "accepts"},
  };
  std::string missing;
  if (!observed.no_new_privileges) Add("no_new_privs is not set", &missing);
  if (!observed.resource_limits) Add("resource limits are not set", &missing);
  if (observed.attempts.empty()) Add("nothing was tried", &missing);
  for (const auto& [kind, words] : kKinds) {
    if (kind == ActKind::kReadFile && accept_weak_files) continue;
    const Attempt* possible = FirstPossible(observed, kind);
    if (possible == nullptr) continue;
    Add(base::Cat(words, " (", possible->act, ": ", possible->seen, ")"), &missing);
  }
  return missing;
}

}  // namespace tensord::worker
