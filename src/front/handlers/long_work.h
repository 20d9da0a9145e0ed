// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

#include "absl/functional/any_invocable.h"
#include "front/handlers/context.h"
#include "loop/event_loop.h"
#include "sched/call.h"

// Reading and printing JSON takes about a millisecond a megabyte: what is large goes to a thread of
// its own, so that one request never keeps the others of its loop waiting.
namespace tensord::front {

// So much costs about 4 ms; below, the way to the other thread and back is not worth it.
inline constexpr size_t kLongBodyBytes = size_t{4} << 20;
inline constexpr size_t kLongOutputBytes = size_t{512} << 10;  // 128 Ki numbers, and their text.

// True when printing these outputs takes long: they have so many bytes.
bool IsLong(const sched::CallResult& result, size_t long_bytes);

// Runs `work` on the thread for long work, then `then` on `here`; both at once, here, when there is
// no such thread or too much waits for it. Both are destroyed on `here`. The two must keep alive
// what they use; what `work` touches, nobody else does meanwhile.
void RunLong(const ServerContext& server, loop::EventLoop& here, absl::AnyInvocable<void()> work,
             absl::AnyInvocable<void()> then);

}  // namespace tensord::front
