// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/top/watcher.h"

#include <poll.h>
#include <unistd.h>

#include "base/text.h"
#include "doctor/cpus.h"
#include "doctor/top/fetch.h"

namespace tensord::doctor {

Watcher::Watcher(Machine machine, WatchPlan plan, const base::Clock* clock)
    : machine_(std::move(machine)),
      plan_(std::move(plan)),
      clock_(clock),
      library_(nvml::OpenLibrary()),
      cpus_(ReadCpus(machine_).usable()) {}

View Watcher::Look() {
  View view;
  view.cpus = cpus_;
  view.server = plan_.server;
  view.gpus = library_->Read();
  view.host = ReadHost(machine_, absl::ToDoubleSeconds(clock_->Now() - absl::UnixEpoch()));
  if (looked_) view.rates = RatesOf(host_, view.host);
  if (!plan_.server.empty()) ReadServer(&view);
  if (!plan_.ranks_file.empty()) ReadRanks(&view);
  host_ = view.host;
  looked_ = true;
  return view;
}

void Watcher::ReadServer(View* view) {
  const auto page = Fetch(plan_.server, plan_.metrics_path, absl::Seconds(2));
  absl::StatusOr<ServerCounters> server = page.ok() ? ParseMetrics(*page) : page.status();
  if (!server.ok()) {
    view->server_problem = base::Message(server.status());
    return;
  }
  if (looked_) view->models = RatesOf(server_, *server, view->rates.seconds);
  server_ = *std::move(server);
}

void Watcher::ReadRanks(View* view) const {
  const auto text = machine_.Read(plan_.ranks_file);
  if (!text.has_value()) {
    view->ranks_problem = base::Cat("cannot read ", plan_.ranks_file);
    return;
  }
  auto ranks = ParseRanks(*text);
  if (ranks.ok()) {
    view->ranks = *std::move(ranks);
  } else {
    view->ranks_problem = base::Message(ranks.status());
  }
}

bool Pause(absl::Duration duration, bool keys) {
  pollfd input{.fd = keys ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
  return poll(&input, 1, static_cast<int>(absl::ToInt64Milliseconds(duration))) > 0;
}

}  // namespace tensord::doctor
