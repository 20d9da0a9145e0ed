// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/report.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "doctor/json.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr size_t kLevelColumns = 9;
constexpr size_t kIdColumns = 32;

std::string_view Colour(Level level) {
  switch (level) {
    case Level::kOk:
      return "\033[32m";
    case Level::kInfo:
      return "\033[36m";
    case Level::kWarning:
      return "\033[33m";
    case Level::kError:
      return "\033[1;31m";
  }
  return "";
}

// Words of `text` in lines of at most `columns`, each after the first with `indent` before it.
std::string Wrap(std::string_view text, size_t columns, std::string_view indent) {
  std::string out;
  size_t used = 0;
  for (const std::string_view word : Split(text, " ")) {
    if (used > 0 && used + 1 + word.size() > columns) {
      out += base::Cat("\n", indent);
      used = 0;
    }
    if (used > 0) out += ' ';
    out += word;
    used += word.size() + (used > 0 ? 1 : 0);
  }
  return out;
}

std::string Padded(std::string_view text, size_t columns) {
  std::string out(text);
  out.resize(std::max(columns, out.size() + 1), ' ');
  return out;
}

void AddRow(const Finding& finding, const TableStyle& style, std::string* text) {
  const std::string indent(kLevelColumns + kIdColumns, ' ');
  const size_t columns =
      static_cast<size_t>(std::max(style.columns, 60)) - kLevelColumns - kIdColumns;
  std::string level = Padded(Word(finding.level), kLevelColumns);
  if (style.colour) level = base::Cat(Colour(finding.level), level, "\033[0m");
  *text += base::Cat(level, Padded(finding.id, kIdColumns),
                     Wrap(Printable(finding.seen), columns, indent), "\n");
  if (!finding.why.empty()) {
    *text += base::Cat(indent, Wrap(base::Cat("why: ", finding.why), columns, indent), "\n");
  }
  if (!finding.action.empty()) {
    *text += base::Cat(indent, Wrap(base::Cat("do: ", finding.action), columns, indent), "\n");
  }
}

std::string Counted(size_t count, std::string_view noun) {
  return base::Cat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace

std::string_view Word(Level level) {
  constexpr std::array<std::string_view, 4> kWords = {"ok", "info", "warning", "error"};
  return kWords[static_cast<size_t>(level)];
}

Level Worst(const Findings& findings) {
  Level worst = Level::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.level);
  return worst;
}

int ExitCode(const Findings& findings) {
  const Level worst = Worst(findings);
  return worst == Level::kError ? 2 : worst == Level::kWarning ? 1 : 0;
}

std::string ToTable(const Findings& findings, const TableStyle& style) {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.level != Level::kOk || style.all) AddRow(finding, style, &text);
  }
  const auto count = [&](Level level) {
    return static_cast<size_t>(std::ranges::count(findings, level, &Finding::level));
  };
  text += base::Cat("\n", Counted(findings.size(), "finding"), ": ",
                    Counted(count(Level::kError), "error"), ", ",
                    Counted(count(Level::kWarning), "warning"), ", ", count(Level::kInfo),
                    " worth knowing, ", count(Level::kOk), " good.\n");
  return text;
}

std::string ToJson(const Findings& findings) {
  std::string rows;
  for (const Finding& finding : findings) {
    JsonObject object;
    object.Add("id", finding.id).Add("level", Word(finding.level)).Add("seen", finding.seen);
    object.Add("why", finding.why).Add("do", finding.action);
    rows += base::Cat(rows.empty() ? "" : ",", "\n    ", object.text());
  }
  return base::Cat("{\n  \"level\": ", JsonText(Word(Worst(findings))), ",\n  \"findings\": [",
                   rows, "\n  ]\n}\n");
}

}  // namespace tensord::doctor
