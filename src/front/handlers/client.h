// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "front/exchange.h"
#include "sched/fair_share.h"

namespace tensord::front {

// Whose request it is, for fair shares: the peer's address. Its port says nothing: a client opens
// as many connections as it likes.
sched::ClientBucket ClientOf(const RequestHead& head);

}  // namespace tensord::front
