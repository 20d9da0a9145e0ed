// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/utf8.h"
#include "obs/line_writer.h"
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

// Never destroyed: its thread may hang in a write when the process ends. Null: none is asked for.
LineWriter*& Background() {
  static LineWriter* writer = nullptr;
  return writer;
}

std::string_view Word(Level level) { return kWords[static_cast<size_t>(level)]; }

std::string Line(Level level, std::string_view message, const std::vector<Field>& fields) {
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", base::WallTime(), absl::UTCTimeZone());
  return FormatLine(Options(), time, level, message, fields) + "\n";
}

}  // namespace

void StartLog(const LogOptions& options) {
  Options() = options;
  if (!options.background) return;
  const auto lost = [](uint64_t lines) {
    return Line(Level::kWarn, base::Cat(lines, " lines of this log were lost: stderr was not read"),
                {});
  };
  Background() = LineWriter::Start(STDERR_FILENO, lost).release();
}

bool FlushLog(absl::Duration longest) {
  return Background() == nullptr || Background()->Flush(longest);
}

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

// Whether a value needs no quotes. Unicode has more blanks than anybody knows.
bool IsWord(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](char c) {
    return c > ' ' && c < 0x7f && c != '=' && c != '"';
  });
}

std::string Printable(std::string_view text) { return Escape(base::ToUtf8(text)); }

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
                       Word(level), options.process, Printable(message));
    for (const auto& [name, value] : fields) {
      line.append(fmt::format(R"(,"{}":"{}")", name, Printable(value)));
    }
    line.push_back('}');
    return line;
  }
  line = fmt::format("{} {:7} {}: {}", time, Word(level), options.process, Printable(message));
  for (const auto& [name, value] : fields) {
    const std::string_view quote = IsWord(value) ? "" : "\"";
    line.append(fmt::format(" {}={}{}{}", name, quote, Printable(value), quote));
  }
  return line;
}

void Write(Level level, std::string_view message, const std::vector<Field>& fields) {
  if (level < Options().level) return;
  std::string line = Line(level, message, fields);
  if (Taker() != nullptr) return Taker()(line);
  if (Background() != nullptr) return Background()->Write(std::move(line));
  WriteOut(STDERR_FILENO, line);
}

}  // namespace tensord::obs
