// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "absl/status/statusor.h"
#include "base/text.h"
#include "config/option_table.h"
#include "config/parse.h"
#include "config/warnings.h"

// By hand and not by a library for command lines: those at hand take the argument that follows for
// the value of `--name=`, and unpack values that begin with a bracket.
namespace tensord::config {
namespace {

constexpr int kWrongUsage = 2;  // What shells and most tools mean by wrong usage.

std::string Help(std::string_view program) {
  std::string text = base::Cat("Usage: ", program,
                               " [options]\n\nServes TensorFlow models over gRPC and REST.\n"
                               "Options are --name=value or --name value; [default] in brackets.\n"
                               "  --help\n      Print this and exit.\n");
  for (const OptionGroup group : kOptionGroups) {
    text += base::Cat("\n", GroupTitle(group), "\n");
    for (const Option& option : OptionTable()) {
      if (option.group != group) continue;
      const std::string value = ValueText(option, ServerOptions());
      text += base::Cat("  --", option.name, " ", TypeName(option),
                        value.empty() ? "" : base::Cat(" [", value, "]"), "\n      ", option.help);
      if (!option.choices.empty()) text += base::Cat(" (one of ", option.choices, ")");
      if (option.state == OptionState::kNotNeeded) text += base::Cat(". Not needed: ", option.note);
      if (option.state == OptionState::kNoEffect) text += base::Cat(". No effect: ", option.note);
      if (option.state == OptionState::kRefused) text += base::Cat(". Refused: ", option.note);
      text += ".\n";
    }
  }
  return text;
}

std::string UnknownText(std::string_view argument) {
  if (!argument.starts_with("--")) {
    return base::Cat("\"", argument, "\" is no option; options begin with --");
  }
  const std::string_view name = argument.substr(2, argument.find('=') - 2);
  const std::string_view nearest = NearestOption(name);
  return nearest.empty()
             ? base::Cat("there is no option --", name, "; --help lists all")
             : base::Cat("there is no option --", name, "; did you mean --", nearest, "?");
}

// Walks the arguments. Threads: one. Lifetime: the arguments outlive it.
class Walk {
 public:
  explicit Walk(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  bool Done() const { return at_ == arguments_.size(); }
  // Reads one option and its value into the line; an error goes to line->err.
  void Next(CommandLine* line, std::vector<const Option*>* given);

 private:
  // The value of an option that was given without "=": the next argument, if it can be one.
  absl::StatusOr<std::string_view> FollowingValue(const Option& option);

  const std::vector<std::string>& arguments_;
  size_t at_ = 0;
};

absl::StatusOr<std::string_view> Walk::FollowingValue(const Option& option) {
  const std::string_view next = Done() ? std::string_view() : arguments_[at_];
  if (IsBool(option)) {
    if (next != "true" && next != "false") return "true";
  } else if (Done() || next.starts_with("--")) {
    return absl::InvalidArgumentError(base::Cat("--", option.name, " needs a value: --",
                                                option.name, "=<", TypeName(option), ">"));
  }
  ++at_;
  return next;
}

void Walk::Next(CommandLine* line, std::vector<const Option*>* given) {
  const std::string_view argument = arguments_[at_++];
  const size_t equals = argument.find('=');
  const Option* option =
      argument.starts_with("--") ? FindOption(argument.substr(2, equals - 2)) : nullptr;
  if (option == nullptr) {
    line->err += base::Cat("tensord: ", UnknownText(argument), "\n");
    return;
  }
  given->push_back(option);
  const absl::StatusOr<std::string_view> value =
      equals == std::string_view::npos ? FollowingValue(*option) : argument.substr(equals + 1);
  const absl::Status status =
      value.ok() ? SetValue(*option, *value, &line->options) : value.status();
  if (!status.ok()) line->err += base::Cat("tensord: ", base::Message(status), "\n");
}

}  // namespace

CommandLine ParseServeStyle(std::string_view program, const std::vector<std::string>& arguments) {
  CommandLine line;
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    line.out = Help(program);
    line.exit_code = 0;
    return line;
  }
  std::vector<const Option*> given;
  for (Walk walk(arguments); !walk.Done();) walk.Next(&line, &given);
  line.warnings = NoEffectWarnings(given);
  if (!line.err.empty()) line.exit_code = kWrongUsage;
  return line;
}

}  // namespace tensord::config
