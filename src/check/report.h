// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/differences.h"

namespace tensord::check {

// A version directory as it lies there.
struct VersionReport {
  int64_t number = 0;
  std::string directory;
  uint64_t bytes = 0;
  bool loads = false;      // At the start, by the policy.
  bool looked_at = false;  // False: the policy cannot come to want it, and it may be anything.
  std::string waits_for;   // Incomplete: what is missing.
};

struct ModelReport {
  std::string name;
  std::string base_path;
  std::string platform;
  std::string policy;  // "latest(1)"
  std::vector<VersionReport> versions;
};

// How models of a platform are loaded and batched, a sentence each.
struct PlatformReport {
  std::string name;
  std::vector<std::string> lines;
};

// A flag that was given and does not do what it does in the original.
struct FlagReport {
  std::string name;
  std::string value;
  std::string state;  // "not needed", "no effect", "refused"
  std::string note;   // Why, and what to do instead.
};

// What a command line and its files come to, without starting anything.
struct Report {
  // With one of these the server would not start, or a model would not be served.
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  std::vector<std::string> listeners;  // "gRPC on 0.0.0.0:8500"
  std::vector<std::string> process;    // CPUs, loops, memory, sandbox, runtime: a line each.
  std::vector<PlatformReport> platforms;
  std::vector<ModelReport> models;
  std::vector<FlagReport> flags;
  std::vector<Difference> differences;  // Only for the original's command line.

  bool ok() const { return errors.empty(); }
};

}  // namespace tensord::check
