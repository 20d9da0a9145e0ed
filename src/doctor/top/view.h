// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "doctor/nvml/gpus.h"
#include "doctor/top/host.h"
#include "doctor/top/metrics_page.h"
#include "doctor/top/ranks.h"

namespace tensord::doctor {

// All that `tensord top` shows at one moment.
struct View {
  nvml::Gpus gpus;
  HostCounters host;
  HostRates rates;
  int cpus = 1;
  std::string server;          // "127.0.0.1:8501"; empty: none was named.
  std::string server_problem;  // Why its page could not be read.
  std::vector<ModelRates> models;
  std::string ranks_problem;
  std::vector<Rank> ranks;
};

std::string ViewText(const View& view, bool colour);
std::string ViewJson(const View& view);

}  // namespace tensord::doctor
