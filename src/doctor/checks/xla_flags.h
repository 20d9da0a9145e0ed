// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

// TF_XLA_FLAGS ends the process at the first flag that the runtime does not know.
namespace tensord::doctor {

// What is wrong with the variable's value, naming the flag; empty when the runtime will take it.
// `file`: what the file holds that the value names, when it does not begin with "-".
std::string XlaFlagsProblem(std::string_view value);

}  // namespace tensord::doctor
