// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "front/exchange.h"
#include "tensor/request.h"

namespace tensord::front {

// How much its answer matters to whoever sent the request: the header (or gRPC metadata)
// "tensord-criticality", one of critical-plus, critical (as without it), sheddable-plus and
// sheddable, in any case. INVALID_ARGUMENT for another value: a sender who wrote one by mistake
// would only find out under load.
//
// Without it, what the request itself gives as its `priority` decides: 1 is critical-plus, 2
// critical, 3 sheddable-plus, all above sheddable; 0 is none.
absl::StatusOr<tensor::Criticality> CriticalityOf(const RequestHead& head, uint64_t priority = 0);

}  // namespace tensord::front
