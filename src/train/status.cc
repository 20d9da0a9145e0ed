// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/status.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "base/unique_fd.h"
#include "obs/log.h"

namespace tensord::train {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(10);

}  // namespace

void StepRate::Add(absl::Time now, int64_t steps) {
  looks_.emplace_back(now, steps);
  while (looks_.size() > 2 && now - looks_.front().first > kWindow) looks_.pop_front();
}

double StepRate::PerSecond() const {
  if (looks_.size() < 2) return 0;
  const double seconds = absl::ToDoubleSeconds(looks_.back().first - looks_.front().first);
  const auto steps = static_cast<double>(looks_.back().second - looks_.front().second);
  return seconds > 0 ? steps / seconds : 0;
}

std::string StatusJson(const std::vector<RankStatus>& ranks) {
  std::string list;
  for (const RankStatus& rank : ranks) {
    list +=
        base::Cat(list.empty() ? "" : ", ", "{\"name\": \"", obs::Escape(rank.name),
                  "\", \"step\": ", rank.step, ", \"steps_per_second\": ", rank.steps_per_second,
                  ", \"input_wait\": ", rank.input_wait);
    if (!rank.input_stage.empty()) {
      list += base::Cat(", \"input_stage\": \"", obs::Escape(rank.input_stage),
                        "\", \"input_stage_share\": ", rank.input_stage_share);
    }
    if (rank.all_reduce >= 0) list += base::Cat(", \"all_reduce\": ", rank.all_reduce);
    if (rank.all_reduce_bytes >= 0) {
      list += base::Cat(", \"all_reduce_bytes\": ", rank.all_reduce_bytes);
    }
    list += "}";
  }
  return base::Cat("{\"ranks\": [", list, "]}\n");
}

absl::Status ReplaceFile(const std::string& path, const std::string& text) {
  const std::string next = base::Cat(path, ".next");
  unlink(next.c_str());  // What a killed one left, or a link that somebody laid there.
  base::UniqueFd file(open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  const bool written = file.valid() && write(file.get(), text.data(), text.size()) ==
                                           static_cast<ssize_t>(text.size());
  if (!written || std::rename(next.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(base::Cat("cannot write ", path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace tensord::train
