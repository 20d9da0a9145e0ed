// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/statusor.h"
#include "front/exchange.h"
#include "tensor/request.h"

namespace tensord::front {

// How much its answer matters to whoever sent the request: the header (or gRPC metadata)
// "tensord-criticality", one of critical-plus, critical (as without it), sheddable-plus and
// sheddable, in any case. INVALID_ARGUMENT for another value: a sender who wrote one by mistake
// would only find out under load.
absl::StatusOr<tensor::Criticality> CriticalityOf(const RequestHead& head);

}  // namespace tensord::front
