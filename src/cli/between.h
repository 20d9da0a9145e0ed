// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "base/text.h"

namespace tensord::cli {

// As CLI::Range of doubles, which takes "nan" for a number between any two.
// `what` says what the number counts, for the error.
inline CLI::Validator Between(double low, double high, const char* what = "a number") {
  const std::string range = base::Cat("[", low, " - ", high, "]");
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && value >= low && value <= high) return "";
        return base::Cat("Value ", text, " not in range ", range, ": ", what, " is expected");
      },
      base::Cat("FLOAT in ", range));
}

}  // namespace tensord::cli
