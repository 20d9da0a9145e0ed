// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/limits.h"

namespace tensord::serve {

DescriptorLimit RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  DescriptorLimit raised{.before = limit.rlim_cur, .now = limit.rlim_cur};
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) raised.now = limit.rlim_cur;
  return raised;
}

int ConnectionsMax(uint64_t descriptors, size_t listeners) {
  const uint64_t reserved = std::min(descriptors / 2, limits::kDescriptorsReserved);
  const uint64_t share = (descriptors - reserved) / std::max<size_t>(listeners, 1);
  const auto most = static_cast<uint64_t>(limits::kConnectionsMax);
  return static_cast<int>(std::clamp<uint64_t>(share, 1, most));
}

}  // namespace tensord::serve
