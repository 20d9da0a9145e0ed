// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "doctor/advise/cost.h"
#include "doctor/json.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

double Top(const Costs& costs) { return std::max({costs.own.back(), costs.rent.back(), 1.0}); }

std::string Verdict(const Prices& prices, const Costs& costs) {
  const std::string sums =
      base::Cat("over ", prices.months, " months: own ", Fixed(costs.own_total, 0),
                " (resale taken off), rent ", Fixed(costs.rent_total, 0));
  if (costs.break_even) {
    return base::Cat("owning has cost no more than renting from month ", *costs.break_even, " on; ",
                     sums);
  }
  return base::Cat("renting stays cheaper month by month for all ", prices.months, " months; ",
                   sums);
}

std::string Assumptions(const Prices& p) {
  return base::Cat("Assumptions: bought for ", Fixed(p.machine, 0), " at the start, sold for ",
                   Percent(p.resale_share), " of it at the end; in use ", Percent(p.utilisation),
                   " of the hours (730 a month); ", Fixed(p.kilowatts, 2), " kW then, ",
                   Fixed(p.kilowatts_idle, 2), " kW idle, times ", Fixed(p.cooling_factor, 2),
                   " for the site, at ", Fixed(p.kilowatt_hour, 2), " a kWh; ",
                   Fixed(p.hosting_month, 0), " hosting and ", Fixed(p.upkeep_month, 0),
                   " upkeep a month; rented for ", Fixed(p.rent_hour, 2), " an hour in use and ",
                   Fixed(p.rent_storage_month, 0),
                   " storage a month. No interest, no taxes, prices that do not change. The "
                   "numbers are examples "
                   "unless you gave a --table: edit them.\n");
}

}  // namespace

std::string CostText(const Prices& prices, const Costs& costs) {
  constexpr int kRows = 14;
  constexpr size_t kColumns = 72;
  std::vector<std::string> rows(kRows, std::string(kColumns, ' '));
  for (size_t x = 0; x < kColumns; ++x) {
    const size_t month = x * (costs.own.size() - 1) / (kColumns - 1);
    for (const auto& [line, mark] : {std::pair(&costs.rent, 'r'), std::pair(&costs.own, 'O')}) {
      const double height = (*line)[month] / Top(costs) * (kRows - 1);
      rows[static_cast<size_t>(kRows - 1) - static_cast<size_t>(std::lround(height))][x] = mark;
    }
  }
  std::string text = base::Cat(Verdict(prices, costs), "\n\n", Fixed(Top(costs), 0), "\n");
  for (const std::string& row : rows) text += base::Cat("|", row, "\n");
  text += base::Cat("+", std::string(kColumns, '-'), "\n0", std::string(kColumns - 10, ' '),
                    "month ", prices.months, "\nO: own   r: rent");
  if (costs.break_even) text += base::Cat("   break-even: month ", *costs.break_even);
  return base::Cat(text, "\n\n", Assumptions(prices));
}

std::string CostSvg(const Prices& prices, const Costs& costs) {
  constexpr double kLeft = 80, kTop = 40, kWidth = 640, kHeight = 320;
  const auto x = [&](double month) { return kLeft + kWidth * month / prices.months; };
  const auto y = [&](double money) { return kTop + kHeight * (1 - money / Top(costs)); };
  const auto line = [&](const std::vector<double>& sums, std::string_view colour) {
    std::string points;
    for (size_t i = 0; i < sums.size(); ++i) {
      points += base::Cat(Fixed(x(static_cast<double>(i)), 1), ",", Fixed(y(sums[i]), 1), " ");
    }
    return base::Cat("<polyline fill=\"none\" stroke=\"", colour, "\" stroke-width=\"2\" points=\"",
                     points, "\"/>\n");
  };
  const auto words = [](double at_x, double at_y, std::string_view text) {
    return base::Cat("<text x=\"", Fixed(at_x, 0), "\" y=\"", Fixed(at_y, 0), "\">", text,
                     "</text>\n");
  };
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 420\" "
      "font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"760\" height=\"420\" fill=\"white\"/>\n";
  svg += base::Cat("<path d=\"M80 40V360H720\" fill=\"none\" stroke=\"black\"/>\n");
  svg += line(costs.own, "#1f77b4") + line(costs.rent, "#d62728");
  svg += words(8, kTop + 5, Fixed(Top(costs), 0)) + words(8, kTop + kHeight, "0");
  svg += words(kLeft, 380, "month 0") + words(665, 380, base::Cat("month ", prices.months));
  svg += words(kLeft, 25, Verdict(prices, costs));
  svg += words(kLeft, 405, "blue: own   red: rent");
  if (costs.break_even) {
    const std::string at = Fixed(x(*costs.break_even), 1);
    svg += base::Cat("<path d=\"M", at, " 40V360\" stroke=\"gray\" stroke-dasharray=\"4\"/>\n");
    svg += words(x(*costs.break_even) + 4, 55, base::Cat("month ", *costs.break_even));
  }
  return svg + "</svg>\n";
}

std::string CostJson(const Prices& prices, const Costs& costs) {
  JsonObject object;
  object.Add("months", static_cast<double>(prices.months));
  object.Raw("break_even_month",
             costs.break_even ? JsonNumber(static_cast<double>(*costs.break_even)) : "null");
  object.Add("own_total", costs.own_total).Add("rent_total", costs.rent_total);
  object.Add("assumptions", Trim(Assumptions(prices)));
  return object.text() + "\n";
}

}  // namespace tensord::doctor
