// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>

#include "base/text.h"
#include "config/option_table.h"
#include "config/parse.h"
#include "config/warnings.h"

namespace tensord::config {
namespace {

constexpr int kOriginalFailure = 255;  // The original returns -1 from main.

// The original's layout: tab, the flag with its default in a column of 33, type, words.
std::string Usage(std::string_view program) {
  constexpr size_t kColumn = 33;
  std::string usage = base::Cat("usage: ", program, "\nFlags:\n");
  for (const Option& option : OptionTable()) {
    const std::string value = ValueText(option, ServerOptions());
    const bool quoted = TypeName(option) == "string";
    std::string flag =
        base::Cat("--", option.name, "=", quoted ? "\"" : "", value, quoted ? "\"" : "");
    if (flag.size() < kColumn) flag.resize(kColumn, ' ');
    usage += base::Cat("\t", flag, "\t", TypeName(option), "\t", option.help);
    if (!option.note.empty()) usage += base::Cat(". Now: ", option.note);
    usage += '\n';
  }
  return usage;
}

struct Split {
  const Option* option = nullptr;  // Null: not a flag of ours in a form that is allowed.
  std::string_view value;
};

Split SplitArgument(std::string_view argument) {
  if (!argument.starts_with("--")) return {};
  const size_t equals = argument.find('=');
  const bool has_value = equals != std::string_view::npos;
  const Option* option = FindOption(argument.substr(2, has_value ? equals - 2 : equals));
  if (option == nullptr) return {};
  if (has_value) return {option, argument.substr(equals + 1)};
  return IsBool(*option) ? Split{option, "true"} : Split{};
}

}  // namespace

CommandLine ParseOriginalStyle(std::string_view program,
                               const std::vector<std::string>& arguments) {
  CommandLine line;
  std::vector<const Option*> given;
  std::vector<std::string_view> unknown;
  bool readable = true;
  for (const std::string& argument : arguments) {
    // Everything behind "--" is left alone.
    const Split split =
        !unknown.empty() && unknown.back() == "--" ? Split{} : SplitArgument(argument);
    if (split.option == nullptr) {
      if (unknown.empty() || unknown.back() != "--") unknown.push_back(argument);
      continue;
    }
    given.push_back(split.option);
    const absl::Status status = SetValue(*split.option, split.value, &line.options);
    if (status.ok()) continue;
    readable = false;
    line.err += base::Cat(base::Message(status), "\n");
  }
  line.warnings = NoEffectWarnings(given);
  if (!readable || (!unknown.empty() && unknown.front() == "--help")) {
    line.out = Usage(program);
    line.exit_code = kOriginalFailure;
  } else if (!unknown.empty() && !line.options.version) {
    line.out = base::Cat("unknown argument: ", unknown.front(), "\n", Usage(program));
  }
  return line;
}

}  // namespace tensord::config
