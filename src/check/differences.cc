// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "check/differences.h"

#include "base/check.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::check {
namespace {

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

// The parts of a text between separators.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

absl::StatusOr<Difference> ParseRow(std::string_view area, std::string_view line) {
  const std::vector<std::string_view> cells = Split(line, '|');
  // Before the first bar and behind the last there is nothing.
  if (cells.size() != 6 || !Trimmed(cells.back()).empty()) {
    return absl::InvalidArgumentError(
        base::Cat("a row of four cells was expected, without bars in them: ", line));
  }
  Difference row{Trimmed(area), Trimmed(cells[1]), Trimmed(cells[2]), Trimmed(cells[3]),
                 Trimmed(cells[4])};
  for (const std::string* cell : {&row.area, &row.what, &row.original, &row.ours, &row.why}) {
    if (cell->empty()) return absl::InvalidArgumentError(base::Cat("an empty cell: ", line));
  }
  return row;
}

bool Concerns(const Difference& row, const Uses& uses) {
  // Those rows compare with Triton.
  if (row.area == "Open Inference Protocol") return false;
  if (row.area == "REST" || row.what.starts_with("REST")) return uses.rest;
  if (row.what.starts_with("Labels")) return uses.labels;
  return true;
}

}  // namespace

absl::StatusOr<std::vector<Difference>> ParseDifferences(std::string_view page) {
  std::vector<Difference> rows;
  std::string_view area;
  for (const std::string_view line : Split(page, '\n')) {
    if (line.starts_with("## ")) area = line.substr(3);
    if (!line.starts_with("|")) continue;
    if (line.find_first_not_of("|- ") == std::string_view::npos) {
      if (!rows.empty()) rows.pop_back();  // What stands above a rule is a head.
      continue;
    }
    ASSIGN_OR_RETURN(Difference row, ParseRow(area, line));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Difference> DifferencesFor(const Uses& uses) {
  absl::StatusOr<std::vector<Difference>> rows = ParseDifferences(kDifferencesPage);
  TENSORD_CHECK(rows.ok());  // Part of the program; a test reads it.
  std::erase_if(*rows, [&](const Difference& row) { return !Concerns(row, uses); });
  return *std::move(rows);
}

}  // namespace tensord::check
