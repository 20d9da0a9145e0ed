// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/advise/cost.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr double kHoursAMonth = 730;
constexpr int kMonthsMax = 120;  // Hardware is not kept for longer.

struct Row {
  std::string_view name;
  double Prices::*member;
  double max;
  std::string_view meaning;
};

constexpr double kMoneyMax = 1e12;
constexpr std::array kRows = {
    Row{"machine", &Prices::machine, kMoneyMax, "price of the machine"},
    Row{"resale_share", &Prices::resale_share, 1, "share of that price it brings at the end"},
    Row{"kilowatts", &Prices::kilowatts, 1e6, "power under load"},
    Row{"kilowatts_idle", &Prices::kilowatts_idle, 1e6, "power when idle"},
    Row{"kilowatt_hour", &Prices::kilowatt_hour, 1e6, "price of a kilowatt-hour"},
    Row{"cooling_factor", &Prices::cooling_factor, 10,
        "power of the site per power of the machine"},
    Row{"hosting_month", &Prices::hosting_month, kMoneyMax, "space and network, a month"},
    Row{"upkeep_month", &Prices::upkeep_month, kMoneyMax, "people and spare parts, a month"},
    Row{"rent_hour", &Prices::rent_hour, kMoneyMax, "rent of such a machine, an hour in use"},
    Row{"rent_storage_month", &Prices::rent_storage_month, kMoneyMax, "rented storage, a month"},
    Row{"utilisation", &Prices::utilisation, 1, "share of the hours in use"},
};

// As much of a table's text as helps to find it.
std::string Quoted(std::string_view text) {
  constexpr size_t kBytesShown = 40;
  const bool cut = text.size() > kBytesShown;
  return base::Cat("\"", Ascii(text.substr(0, kBytesShown)), cut ? "…\"" : "\"");
}

absl::Status Set(std::string_view name, std::string_view text, Prices* prices) {
  const std::optional<double> value = ToDouble(text);
  if (!value.has_value() || !(*value >= 0)) {
    return absl::InvalidArgumentError(base::Cat(Quoted(text), " is not a number from 0 on"));
  }
  if (name == "months") {
    if (*value < 1 || *value > kMonthsMax) {
      return absl::InvalidArgumentError(base::Cat("months must be 1 to ", kMonthsMax));
    }
    prices->months = static_cast<int>(*value);
    return absl::OkStatus();
  }
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    if (*value > row.max) {
      return absl::InvalidArgumentError(base::Cat(name, " must be at most ", Fixed(row.max, 0)));
    }
    prices->*row.member = *value;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      base::Cat("there is no ", Quoted(name), "; `tensord advise cost --print_table` lists all"));
}

}  // namespace

absl::StatusOr<Prices> ParsePrices(std::string_view table) {
  Prices prices;
  int number = 0;
  for (size_t begin = 0; begin < table.size();) {
    const size_t end = std::min(table.find('\n', begin), table.size());
    std::string_view line = table.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    absl::Status status = absl::InvalidArgumentError("it is not \"name = value\"");
    if (equals != std::string_view::npos) {
      status = Set(Trim(line.substr(0, equals)), Trim(line.substr(equals + 1)), &prices);
    }
    if (!status.ok()) return base::WithContext(status, base::Cat("line ", number, ": "));
  }
  return prices;
}

std::string PriceTable() {
  const Prices prices;
  std::string text =
      "# tensord advise cost: edit and give it with --table. One currency for all.\n";
  for (const Row& row : kRows) {
    text += base::Cat(row.name, " = ", Fixed(prices.*row.member, 2), "  # ", row.meaning, "\n");
  }
  return text + base::Cat("months = ", prices.months, "  # how long to compare\n");
}

Costs Compare(const Prices& p) {
  const double kilowatts = p.kilowatts * p.utilisation + p.kilowatts_idle * (1 - p.utilisation);
  const double own_month = kilowatts * p.cooling_factor * kHoursAMonth * p.kilowatt_hour +
                           p.hosting_month + p.upkeep_month;
  const double rent_month = p.rent_hour * kHoursAMonth * p.utilisation + p.rent_storage_month;
  Costs costs;
  for (int month = 0; month <= p.months; ++month) {
    costs.own.push_back(p.machine + own_month * month);
    costs.rent.push_back(rent_month * month);
    if (!costs.break_even && month > 0 && costs.own.back() <= costs.rent.back()) {
      costs.break_even = month;
    }
  }
  costs.own_total = costs.own.back() - p.machine * p.resale_share;
  costs.rent_total = costs.rent.back();
  return costs;
}

}  // namespace tensord::doctor
