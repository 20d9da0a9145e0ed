// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/long_work.h"

#include <memory>
#include <utility>

#include "loop/loop_set.h"
#include "loop/loop_thread.h"

namespace tensord::front {

bool IsLong(const sched::CallResult& result, size_t long_bytes) {
  size_t bytes = 0;
  for (const tensor::TensorView& output : result.outputs) bytes += output.bytes.size();
  return bytes >= long_bytes;
}

void RunLong(const ServerContext& server, loop::EventLoop& here, absl::AnyInvocable<void()> work,
             absl::AnyInvocable<void()> then) {
  struct Steps {
    absl::AnyInvocable<void()> work;
    absl::AnyInvocable<void()> then;
  };
  auto steps = std::make_shared<Steps>(Steps{std::move(work), std::move(then)});
  const bool posted =
      server.long_work != nullptr && server.long_work->Run([steps, &here]() mutable {
        steps->work();
        loop::PostOrDie(here, [last = std::move(steps)] { last->then(); });
      });
  if (posted) return;
  steps->work();
  steps->then();
}

}  // namespace tensord::front
