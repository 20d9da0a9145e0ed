// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/client.h"

#include <functional>
#include <string_view>

#include "base/sched_limits.h"

namespace tensord::front {

sched::ClientBucket ClientOf(const RequestHead& head) {
  const std::string_view peer = head.peer;
  const std::string_view address = peer.substr(0, peer.rfind(':'));
  return static_cast<sched::ClientBucket>(std::hash<std::string_view>()(address) %
                                          limits::kClientBuckets);
}

}  // namespace tensord::front
