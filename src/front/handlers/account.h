// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "front/exchange.h"
#include "front/handlers/context.h"

namespace tensord::front {

// Counts a request that is over: the one place where requests meet metrics.
// Threads: the loop's.
void Account(const LoopContext& context, const Ending& ending);

}  // namespace tensord::front
