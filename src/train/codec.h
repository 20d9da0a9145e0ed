// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "train/messages.h"

// Messages between agents as lines: a word, then name=value fields; blanks, line ends, '%', '=' and
// ',' in values are percent-coded. Lists are comma-separated. Unknown fields are skipped, missing
// ones keep their defaults. Pure.
namespace tensord::train {

std::string ToLine(const Report& report);
std::string ToLine(const Command& command);

// INVALID_ARGUMENT for what is no such message.
absl::StatusOr<Report> ParseReport(std::string_view line);
absl::StatusOr<Command> ParseCommand(std::string_view line);

// The line with the job's token as one more field, and the token of a line.
std::string WithToken(std::string line, std::string_view token);
std::string TokenOf(std::string_view line);

}  // namespace tensord::train
