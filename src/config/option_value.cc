// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <charconv>
#include <type_traits>

#include "base/text.h"
#include "config/option_table.h"

namespace tensord::config {
namespace {

// The type of the member that a pointer to member points to.
template <typename T>
T MemberType(T ServerOptions::*);

bool Parse(std::string_view text, bool* value) {
  if (text != "true" && text != "false") return false;
  *value = text == "true";
  return true;
}

bool Parse(std::string_view text, std::string* value) {
  *value = text;
  return true;
}

template <typename Number>
bool Parse(std::string_view text, Number* value) {
  // The original's reader takes a leading plus; from_chars does not.
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

bool InChoices(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const size_t comma = choices.find(',');
    if (choices.substr(0, comma) == text) return true;
    choices = comma == std::string_view::npos ? "" : choices.substr(comma + 1);
  }
  return false;
}

std::string Expected(const Option& option) {
  if (!option.choices.empty()) return base::Cat("one of ", option.choices);
  if (IsBool(option)) return "true or false";
  return base::Cat("a value of type ", TypeName(option));
}

}  // namespace

bool IsBool(const Option& option) {
  return std::holds_alternative<bool ServerOptions::*>(option.member);
}

std::string_view TypeName(const Option& option) {
  return std::visit(
      [](auto member) -> std::string_view {
        using T = decltype(MemberType(member));
        if constexpr (std::is_same_v<T, bool>) return "bool";
        if constexpr (std::is_same_v<T, int32_t>) return "int32";
        if constexpr (std::is_same_v<T, int64_t>) return "int64";
        if constexpr (std::is_same_v<T, float>) return "float";
        return "string";
      },
      option.member);
}

std::string ValueText(const Option& option, const ServerOptions& options) {
  return std::visit([&](auto member) { return base::Cat(options.*member); }, option.member);
}

bool IsDefault(const Option& option, const ServerOptions& options) {
  static const ServerOptions defaults;
  return std::visit([&](auto member) { return options.*member == defaults.*member; },
                    option.member);
}

absl::Status SetValue(const Option& option, std::string_view text, ServerOptions* options) {
  const bool ok = std::visit(
      [&](auto member) {
        decltype(MemberType(member)) value{};
        if (!Parse(text, &value)) return false;
        if (!option.choices.empty() && !InChoices(option.choices, text)) return false;
        options->*member = std::move(value);
        return true;
      },
      option.member);
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat("--", option.name, " takes ", Expected(option), ", not \"", text, "\""));
}

std::vector<std::string> ToArguments(const ServerOptions& options) {
  std::vector<std::string> arguments;
  for (const Option& option : OptionTable()) {
    if (IsDefault(option, options)) continue;
    arguments.push_back(base::Cat("--", option.name, "=", ValueText(option, options)));
  }
  return arguments;
}

}  // namespace tensord::config
