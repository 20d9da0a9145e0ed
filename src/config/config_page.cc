// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "config/option_table.h"

namespace tensord::config {
namespace {

constexpr std::string_view kIntroduction = R"(# Options

<!-- Made by `tensord docs config` from src/config/option_table.cc; a test compares. Do not edit. -->

`tensord serve` takes `--name=value` or `--name value`; an option it does not know is an error.
Started under the name `tensorflow_model_server`, the same program reads its command line as the
original does: only `--name=value` (for a bool also `--name`), an unknown flag is reported and
start-up goes on, a value that cannot be read prints the usage and exits with 255.

State: **works**; **no effect**: accepted for the original's sake, with one warning line when given;
**refused**: any value but the default stops the start, since going on without it would change what
is served or who may reach it. Origin: *original* is a flag of tensorflow_model_server with its
syntax and default, *tensord* is ours.
)";

std::string_view StateText(OptionState state) {
  switch (state) {
    case OptionState::kWorks:
      return "works";
    case OptionState::kNoEffect:
      return "no effect";
    case OptionState::kRefused:
      return "refused";
  }
  return "";
}

std::string DefaultText(const Option& option) {
  const std::string text = ValueText(option, ServerOptions());
  return text.empty() ? "(empty)" : base::Cat("`", text, "`");
}

std::string Meaning(const Option& option) {
  std::string text(option.help);
  if (!option.choices.empty()) text += base::Cat(" (one of `", option.choices, "`)");
  if (!option.note.empty()) text += base::Cat(". Now: ", option.note);
  return text;
}

}  // namespace

std::string ConfigPage() {
  std::string page(kIntroduction);
  for (const OptionGroup group : kOptionGroups) {
    page += base::Cat("\n## ", GroupTitle(group),
                      "\n\n| option | type | default | origin | state | meaning |\n"
                      "| --- | --- | --- | --- | --- | --- |\n");
    for (const Option& option : OptionTable()) {
      if (option.group != group) continue;
      page += base::Cat("| `", option.name, "` | ", TypeName(option), " | ", DefaultText(option),
                        " | ", option.origin == OptionOrigin::kOriginal ? "original" : "tensord",
                        " | ", StateText(option.state), " | ", Meaning(option), " |\n");
    }
  }
  return page;
}

}  // namespace tensord::config
