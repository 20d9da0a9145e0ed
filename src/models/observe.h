// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "models/decide.h"
#include "models/world.h"

// What decisions and events do to the observed state. Pure, so that the simulation and the tables
// of Decide use the same steps as the server. Events of unknown workers do nothing.
namespace tensord::models {

// What the host is to be told, in this order.
struct Order {
  fleet::WorkerKey key;
  std::optional<VersionFiles> start;  // Unset: stop.
};
using Orders = std::vector<Order>;

// REQUIRES: `action` comes from Decide for this state.
void Apply(const Action& action, const Desired& desired, absl::Time now, Observed* observed,
           Orders* orders);

void Loaded(const fleet::WorkerKey& key, const engine::ModelInfo& info,
            std::shared_ptr<void> handle, absl::Time now, Observed* observed);
void LoadFailed(const fleet::WorkerKey& key, const absl::Status& status, const Options& options,
                absl::Time now, Observed* observed);
void Died(const fleet::WorkerKey& key, std::string_view reason, const Options& options,
          absl::Time now, Observed* observed);
void Stopped(const fleet::WorkerKey& key, const Options& options, absl::Time now,
             Observed* observed);

// A listing that succeeded. `after_error`: the one before did not; what failed since may have
// failed because of that, and is tried again.
void Listed(const std::string& model, Listing listing, bool after_error, Desired* desired,
            Observed* observed);

// Moves labels whose target serves, adds new ones, drops those that left the configuration. True if
// any did.
bool MoveLabels(const ObservedModel& observed, DesiredModel* desired);

// Pauses: failures and deaths in a row, 1 for the first.
absl::Duration LoadRetryPause(int failures, const Options& options);
absl::Duration RestartPause(int deaths);

}  // namespace tensord::models
