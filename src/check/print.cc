// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "check/print.h"

#include "base/text.h"

namespace tensord::check {
namespace {

void AddLines(std::string_view title, const std::vector<std::string>& lines, std::string* text) {
  if (lines.empty()) return;
  *text += base::Cat(title, "\n");
  for (const std::string& line : lines) *text += base::Cat("  ", line, "\n");
  *text += "\n";
}

std::string VersionLine(const VersionReport& version) {
  if (!version.looked_at) {
    return base::Cat("version ", version.number, ": not wanted by the policy");
  }
  const std::string size = base::Cat(version.bytes >> 20, " MiB");
  if (!version.waits_for.empty()) {
    return base::Cat("version ", version.number,
                     ": incomplete, would be waited for: ", version.waits_for);
  }
  return base::Cat("version ", version.number, ": complete, ", size,
                   version.loads ? ", would be loaded" : ", not wanted by the policy");
}

std::vector<std::string> ModelLines(const std::vector<ModelReport>& models) {
  std::vector<std::string> lines;
  for (const ModelReport& model : models) {
    lines.push_back(
        base::Cat(model.name, " (", model.platform, ", ", model.policy, "): ", model.base_path));
    for (const VersionReport& version : model.versions) {
      lines.push_back(base::Cat("  ", VersionLine(version)));
    }
  }
  return lines;
}

std::vector<std::string> FlagLines(const std::vector<FlagReport>& flags) {
  std::vector<std::string> lines;
  lines.reserve(flags.size());
  for (const FlagReport& flag : flags) {
    lines.push_back(base::Cat("--", flag.name, "=", flag.value, ": ", flag.state, ": ", flag.note));
  }
  return lines;
}

std::vector<std::string> DifferenceLines(const std::vector<Difference>& differences) {
  std::vector<std::string> lines;
  for (const Difference& row : differences) {
    lines.push_back(base::Cat(row.area, ": ", row.what, ": ", row.original));
    lines.push_back(base::Cat("  here: ", row.ours));
    lines.push_back(base::Cat("  why: ", row.why));
  }
  return lines;
}

}  // namespace

std::string ToText(const Report& report) {
  std::string text;
  AddLines("listens:", report.listeners, &text);
  AddLines("process:", report.process, &text);
  for (const PlatformReport& platform : report.platforms) {
    AddLines(base::Cat("platform ", platform.name, ":"), platform.lines, &text);
  }
  AddLines("models:", ModelLines(report.models), &text);
  AddLines("flags that do something else than in tensorflow_model_server:", FlagLines(report.flags),
           &text);
  AddLines("what clients and operators of tensorflow_model_server will find different:",
           DifferenceLines(report.differences), &text);
  AddLines("warnings:", report.warnings, &text);
  AddLines("errors:", report.errors, &text);
  text += report.ok() ? "The server would start and serve all of these models.\n"
                      : "The server would not start, or not serve all of these models.\n";
  return text;
}

}  // namespace tensord::check
