// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "front/exchange.h"
#include "front/handlers/access.h"
#include "front/handlers/context.h"

namespace tensord::front {

// The one point that every call passes before anything is done for it, whatever its protocol.
// `model` is empty where a call concerns none; it is the name that is then looked up, so that no
// spelling of a path passes. Open without rules, but for admin calls of callers of the REST port
// and, where there is an admin listener, of every other one. What is refused, and every admin
// call, is a line in the log (audit.h).
// OK, PERMISSION_DENIED or UNAUTHENTICATED.
absl::Status Authorize(const LoopContext& context, const RequestHead& caller, Operation operation,
                       std::string_view model);

// The same before the body is read: refuses who will get nothing whatever the body says.
absl::Status AuthorizeCaller(const LoopContext& context, const RequestHead& caller);

// The same question for one line of a list: nothing is refused by it, so nothing is logged.
bool Permits(const LoopContext& context, const RequestHead& caller, Operation operation,
             std::string_view model);

}  // namespace tensord::front
