// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

// What `tensord doctor` finds is data; how it looks is report.h's business.
namespace tensord::doctor {

enum class Level {
  kOk,       // Looked at, and good.
  kInfo,     // Worth knowing.
  kWarning,  // Works, but slower, smaller or less safely than it could.
  kError,    // Will not work.
};

struct Finding {
  std::string id = {};  // "cpu.avx": what was looked at. Stays the same between versions.
  Level level = Level::kOk;
  std::string seen = {};
  std::string why = {};     // Why it matters; empty when it speaks for itself.
  std::string action = {};  // What to do; empty when there is nothing to do.
};

using Findings = std::vector<Finding>;

}  // namespace tensord::doctor
