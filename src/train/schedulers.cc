// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/schedulers.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "train/environment.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

std::optional<int> Number(std::string_view text) {
  int number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

// "01-03,7" behind `head`; false for what is no such range.
bool ExpandRanges(std::string_view head, std::string_view ranges, std::string_view tail,
                  std::vector<std::string>* hosts) {
  while (!ranges.empty()) {
    const size_t comma = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, comma);
    ranges.remove_prefix(std::min(comma + 1, ranges.size()));
    const size_t dash = range.find('-');
    const std::string_view from = range.substr(0, std::min(dash, range.size()));
    const std::string_view to = dash == std::string_view::npos ? from : range.substr(dash + 1);
    const auto first = Number(from), last = Number(to);
    if (!first.has_value() || !last.has_value() || *last < *first ||
        *last - *first >= limits::kNodesMax) {
      return false;
    }
    for (int i = *first; i <= *last; ++i) {
      std::string digits = base::Cat(i);
      if (digits.size() < from.size()) digits.insert(0, from.size() - digits.size(), '0');
      hosts->push_back(base::Cat(head, digits, tail));
    }
  }
  return true;
}

std::optional<Placement> FromSlurm(const std::vector<std::string>& environment) {
  std::string_view list = ValueOf(environment, "SLURM_STEP_NODELIST");
  if (list.empty()) list = ValueOf(environment, "SLURM_JOB_NODELIST");
  // Of the step that srun started; a batch script's own variables describe the whole job.
  const auto rank = Number(ValueOf(environment, "SLURM_NODEID"));
  const std::vector<std::string> hosts = ExpandHostList(list);
  if (hosts.empty() || !rank.has_value() || ValueOf(environment, "SLURM_STEP_ID").empty()) {
    return std::nullopt;
  }
  return Placement{.scheduler = "Slurm",
                   .nodes = static_cast<int>(hosts.size()),
                   .node_rank = *rank,
                   .leader = hosts.front()};
}

// A pod of an indexed Job is named job-3 and, with a headless service, job-3.service.….
std::optional<Placement> FromKubernetes(const std::vector<std::string>& environment,
                                        std::string_view host_name) {
  const auto index = Number(ValueOf(environment, "JOB_COMPLETION_INDEX"));
  if (!index.has_value()) return std::nullopt;
  const size_t dot = std::min(host_name.find('.'), host_name.size());
  const std::string ending = base::Cat("-", *index);
  const std::string_view name = host_name.substr(0, dot);
  if (!name.ends_with(ending)) return std::nullopt;
  return Placement{.scheduler = "Kubernetes",
                   .nodes = 0,
                   .node_rank = *index,
                   .leader = base::Cat(name.substr(0, name.size() - ending.size()), "-0",
                                       host_name.substr(dot))};
}

}  // namespace

std::vector<std::string> ExpandHostList(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const size_t open = text.find('[');
    const size_t comma = std::min(text.find(','), text.size());
    if (open == std::string_view::npos || open > comma) {
      if (comma == 0) return {};
      hosts.emplace_back(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
      continue;
    }
    const size_t close = text.find(']', open);
    if (close == std::string_view::npos) return {};
    const size_t end = std::min(text.find(',', close), text.size());
    if (!ExpandRanges(text.substr(0, open), text.substr(open + 1, close - open - 1),
                      text.substr(close + 1, end - close - 1), &hosts)) {
      return {};
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return hosts;
}

std::optional<Placement> FromScheduler(const std::vector<std::string>& environment,
                                       std::string_view host_name) {
  if (auto slurm = FromSlurm(environment); slurm.has_value()) return slurm;
  return FromKubernetes(environment, host_name);
}

}  // namespace tensord::train
