// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>

#include "cli/commands.h"
#include "config/option_table.h"
#include "obs/metric_docs.h"

namespace tensord::cli {

int Docs(const Arguments& arguments) {
  if (arguments == Arguments{"config"}) {
    std::fputs(config::ConfigPage().c_str(), stdout);
    return 0;
  }
  if (arguments == Arguments{"metrics"}) {
    std::fputs(obs::MetricDocs().c_str(), stdout);
    return 0;
  }
  std::fprintf(stderr, "usage: tensord docs config|metrics > docs/PAGE.md\n");
  return 2;
}

}  // namespace tensord::cli
