// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace tensord::worker {

// From now on a fatal signal (SEGV, BUS, ILL, FPE, ABRT, SYS) first sends a DyingRecord on
// `channel_fd` and then ends the process as it would have: the kernel closes the sockets of a dying
// process only after it has freed the memory, which takes a large model half a second.
// Once a process; `channel_fd` stays open.
void SpeakLastWords(int channel_fd, uint64_t incarnation);

// Gives the calling thread a stack of its own for signal handlers, so that it can also speak when
// its stack has overflowed. Each thread that runs the model calls it once.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr unsigned kBytes = 64 * 1024;  // A signal's frame with AMX state takes 11 KiB.
  alignas(16) unsigned char stack_[kBytes];
};

}  // namespace tensord::worker
