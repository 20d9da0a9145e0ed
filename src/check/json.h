// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "check/report.h"

namespace tensord::check {

// The report as one JSON object, with the members' names; "ok" says what the exit code says.
std::string ToJson(const Report& report);

}  // namespace tensord::check
