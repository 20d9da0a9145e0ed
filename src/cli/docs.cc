// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>

#include "cli/commands.h"
#include "config/option_table.h"

namespace tensord::cli {

int Docs(const Arguments& arguments) {
  if (arguments != Arguments{"config"}) {
    std::fprintf(stderr, "usage: tensord docs config > docs/config.md\n");
    return 2;
  }
  std::fputs(config::ConfigPage().c_str(), stdout);
  return 0;
}

}  // namespace tensord::cli
