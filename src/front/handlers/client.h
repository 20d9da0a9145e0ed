// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "front/exchange.h"
#include "sched/fair_share.h"

namespace tensord::front {

// Whose request it is, for fair shares: the value of the header (or gRPC metadata) that the
// operator named, which only a proxy should be able to set; without one, the peer's address. Its
// port says nothing: a client opens as many connections as it likes.
sched::ClientBucket ClientOf(const RequestHead& head, std::string_view identity_header);

}  // namespace tensord::front
