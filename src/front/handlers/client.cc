// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/client.h"

#include <functional>
#include <optional>
#include <string_view>

#include "base/sched_limits.h"

namespace tensord::front {

sched::ClientBucket ClientOf(const RequestHead& head, std::string_view identity_header) {
  std::optional<std::string_view> who;
  if (!identity_header.empty()) who = head.Find(identity_header);
  if (!who.has_value()) {
    const std::string_view peer = head.peer;
    who = peer.substr(0, peer.rfind(':'));
  }
  return static_cast<sched::ClientBucket>(std::hash<std::string_view>()(*who) %
                                          limits::kClientBuckets);
}

}  // namespace tensord::front
