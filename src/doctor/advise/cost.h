// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::doctor {

// What owning and renting the same machine cost. Money in any one currency.
struct Prices {
  double machine = 30000;      // To buy it.
  double resale_share = 0.15;  // Of that, after the months.
  double kilowatts = 1.2;      // Under load.
  double kilowatts_idle = 0.35;
  double kilowatt_hour = 0.25;
  double cooling_factor = 1.4;  // Power of the site for each unit of the machine's.
  double hosting_month = 200;   // Space, network.
  double upkeep_month = 300;    // People and spares.
  double rent_hour = 4.0;       // On demand.
  double rent_storage_month = 100;
  double utilisation = 0.6;  // Share of the hours in use; renting pays only those.
  int months = 36;
};

// Lines "name = value", '#' begins a comment; what is not named keeps its default.
// INVALID_ARGUMENT names the line.
absl::StatusOr<Prices> ParsePrices(std::string_view table);
// The table of the defaults, with a comment a line: to edit.
std::string PriceTable();

struct Costs {
  std::vector<double> own;  // Sum up to the end of month i; [0] is the purchase.
  std::vector<double> rent;
  std::optional<int> break_even;  // First month at which owning has cost no more.
  double own_total = 0;           // With the resale taken off.
  double rent_total = 0;
};
Costs Compare(const Prices& prices);

std::string CostText(const Prices& prices, const Costs& costs);  // With a picture.
std::string CostSvg(const Prices& prices, const Costs& costs);
std::string CostJson(const Prices& prices, const Costs& costs);

}  // namespace tensord::doctor
