// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "doctor/finding.h"

namespace tensord::doctor {

struct TableStyle {
  bool colour = false;
  bool all = true;  // Also what is good.
  int columns = 100;
};

// For people: one row a finding, with why and what to do below it, and a last line that counts.
std::string ToTable(const Findings& findings, const TableStyle& style);

// {"level": "warning", "findings": [{"id", "level", "seen", "why", "do"}]}
std::string ToJson(const Findings& findings);

Level Worst(const Findings& findings);
// 0: nothing worse than info, 1: warnings, 2: errors.
int ExitCode(const Findings& findings);
std::string_view Word(Level level);

}  // namespace tensord::doctor
