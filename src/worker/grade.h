// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "worker/probe.h"

// What a worker's sandbox is worth, from what was observed inside it. Pure; SECURITY.md has it as a
// table.
namespace tensord::worker {

// All of it is seen by the worker itself, before it reads a byte of its model.
struct Observed {
  bool no_new_privileges = false;
  bool resource_limits = false;
  bool own_user = false;
  bool own_network = false;  // Namespaces of its own for network, IPC and names.
  int landlock_abi = 0;      // Of the rules that are enforced; 0: none are.
  std::vector<Attempt> attempts;
};

// "A" own user and namespaces, Landlock with its scopes, seccomp; "B" Landlock and seccomp; "C" one
// of the two; "D" neither.
std::string_view GradeOf(const Observed& observed);

// What of the least that --sandbox=enforce asks for does not hold, in words for people; empty when
// all of it does. `accept_weak_files`: files of others that can be read are none of it.
std::string MissingOf(const Observed& observed, bool accept_weak_files);

}  // namespace tensord::worker
