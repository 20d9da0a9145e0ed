// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "check/report.h"

namespace tensord::check {

// For people: what would happen, then what is wrong.
std::string ToText(const Report& report);

}  // namespace tensord::check
