// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

// Log lines of supervisor and front, on stderr: text for people or one JSON object a line.
// Values are data: what is not UTF-8 becomes '?', control characters are escaped, and in text a
// value with blanks stands in quotes, so no client can forge a line or a field.
namespace tensord::obs {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError };

struct LogOptions {
  bool json = false;
  Level level = Level::kInfo;
  std::string process;  // "supervisor", "front"
  // Lines are written by a thread of their own, so that no reader of stderr, and no disk, holds the
  // caller up. What comes while kLinesWaitingMax wait pushes out the oldest, and that is said.
  bool background = false;
};

// Call once, before threads start. Without it, lines go out as text from Level::kInfo on.
void StartLog(const LogOptions& options);
// INVALID_ARGUMENT names the words that are known.
absl::Status ParseLevel(std::string_view word, Level* level);

using Field = std::pair<std::string_view, std::string_view>;

// Waits until what was written is out, at most for `longest`. False: some of it is not.
bool FlushLog(absl::Duration longest);

// Threads: safe from any.
void Write(Level level, std::string_view message, const std::vector<Field>& fields = {});

template <typename... Args>
void Debug(fmt::format_string<Args...> format, Args&&... args) {
  Write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void Info(fmt::format_string<Args...> format, Args&&... args) {
  Write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void Warn(fmt::format_string<Args...> format, Args&&... args) {
  Write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void Error(fmt::format_string<Args...> format, Args&&... args) {
  Write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

// `text` with control characters, quotes and backslashes as JSON escapes, without the quotes.
std::string Escape(std::string_view text);
// The whole line without its newline; a pure function, so that a test can read it.
std::string FormatLine(const LogOptions& options, std::string_view time, Level level,
                       std::string_view message, const std::vector<Field>& fields);

}  // namespace tensord::obs
