// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "config/server_options.h"

// The one table of command-line options. Both parsers, both help texts, the option vector that the
// supervisor hands to the front and docs/config.md are made from it.
namespace tensord::config {

enum class OptionGroup { kNetwork, kModels, kLoading, kBatching, kRuntime, kObservation, kProcess };
inline constexpr std::array kOptionGroups = {
    OptionGroup::kNetwork, OptionGroup::kModels,      OptionGroup::kLoading, OptionGroup::kBatching,
    OptionGroup::kRuntime, OptionGroup::kObservation, OptionGroup::kProcess};
std::string_view GroupTitle(OptionGroup group);

enum class OptionOrigin {
  kOriginal,  // tensorflow_model_server has it, with the same syntax and default.
  kTensord,
};

enum class OptionState {
  kWorks,
  kNotNeeded,  // Accepted: what it asks for holds without it, or there is nothing to set here.
  kNoEffect,   // Accepted with one warning line: something is lost.
  kRefused,    // Any value but the default is a start-up error: silence would change an answer.
};

// Type and default of an option come from its member of ServerOptions.
using OptionMember =
    std::variant<bool ServerOptions::*, int32_t ServerOptions::*, int64_t ServerOptions::*,
                 float ServerOptions::*, std::string ServerOptions::*>;

struct Option {
  std::string_view name;
  OptionGroup group;
  OptionMember member;
  OptionOrigin origin;
  OptionState state;
  std::string_view help;
  std::string_view note = "";     // Not kWorks: why, and what to do instead.
  std::string_view choices = "";  // Comma list of the only values allowed.
};

// In the order of help texts and docs: by group.
std::span<const Option> OptionTable();
// Null when there is none of that name.
const Option* FindOption(std::string_view name);

bool IsBool(const Option& option);
// "bool", "int32", "int64", "float" or "string".
std::string_view TypeName(const Option& option);
// As a command line would give it.
std::string ValueText(const Option& option, const ServerOptions& options);
bool IsDefault(const Option& option, const ServerOptions& options);

// Reads `text` into the option's member. INVALID_ARGUMENT names option, expectation and value;
// nothing is changed then.
absl::Status SetValue(const Option& option, std::string_view text, ServerOptions* options);

// "--name=value" for everything that differs from its default, in the table's order. Both parsers
// make the same options from it.
std::vector<std::string> ToArguments(const ServerOptions& options);

// The page docs/config.md, made from the table.
std::string ConfigPage();

}  // namespace tensord::config
