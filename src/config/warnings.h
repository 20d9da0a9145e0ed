// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_table.h"

namespace tensord::config {

// One line for each option that was given and has no effect, in the order of the table.
std::vector<std::string> NoEffectWarnings(const std::vector<const Option*>& given);

// The name among `names` that is a few typing errors away from `name`; empty when none is.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> names);
// The same among all options.
std::string_view NearestOption(std::string_view name);

}  // namespace tensord::config
