// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/text.h"
#include "obs/log_lines.h"

namespace tensord::obs {
namespace {

constexpr std::array<std::string_view, 4> kWords = {"debug", "info", "warning", "error"};

// Set by StartLog before threads start, constant afterwards.
LogOptions& Options() {
  static LogOptions options;
  return options;
}

// Who takes the lines instead of stderr; null: nobody.
std::function<void(std::string_view)>& Taker() {
  static std::function<void(std::string_view)> taker;
  return taker;
}

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("tensord",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

std::string_view Word(Level level) { return kWords[static_cast<size_t>(level)]; }

}  // namespace

void StartLog(const LogOptions& options) { Options() = options; }

void SendLinesTo(std::function<void(std::string_view line)> take) { Taker() = std::move(take); }

absl::Status ParseLevel(std::string_view word, Level* level) {
  for (size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i] == word) {
      *level = static_cast<Level>(i);
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      base::Cat("log level '", word, "' is unknown; use debug, info, warning or error"));
}

namespace {

// The character, in UTF-8, at the start of the text, if it is one that hides or turns what a
// terminal shows: C1 controls, directional marks and overrides, line and paragraph separators. 0
// for others.
uint32_t Hiding(std::string_view text) {
  const auto at = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() >= 2 && at(0) == 0xc2 && at(1) >= 0x80 && at(1) < 0xa0) return at(1);
  if (text.size() < 3 || at(0) != 0xe2 || at(1) < 0x80 || at(1) > 0x81) return 0;
  const uint32_t code = 0x2000 + (at(1) - 0x80u) * 64 + (at(2) & 0x3fu);
  const bool hides = (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  return hides ? code : 0;
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (const uint32_t hiding = Hiding(text.substr(i)); hiding != 0) {
      out.append(fmt::format("\\u{:04x}", hiding));
      i += hiding < 0x100 ? 1 : 2;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (byte < 0x20 || byte == 0x7f) {
      out.append(fmt::format("\\u{:04x}", byte));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string FormatLine(const LogOptions& options, std::string_view time, Level level,
                       std::string_view message, const std::vector<Field>& fields) {
  std::string line;
  if (options.json) {
    line = fmt::format(R"({{"time":"{}","level":"{}","process":"{}","message":"{}")", time,
                       Word(level), options.process, Escape(message));
    for (const auto& [name, value] : fields) {
      line.append(fmt::format(R"(,"{}":"{}")", name, Escape(value)));
    }
    line.push_back('}');
    return line;
  }
  line = fmt::format("{} {:7} {}: {}", time, Word(level), options.process, Escape(message));
  for (const auto& [name, value] : fields) line.append(fmt::format(" {}={}", name, Escape(value)));
  return line;
}

void Write(Level level, std::string_view message, const std::vector<Field>& fields) {
  const LogOptions& options = Options();
  if (level < options.level) return;
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", base::WallTime(), absl::UTCTimeZone());
  const std::string line = FormatLine(options, time, level, message, fields);
  if (Taker() != nullptr) return Taker()(line + "\n");
  // An error must be on disk when the process dies next.
  Logger().info("{}", line);
  Logger().flush();
}

}  // namespace tensord::obs
