// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace tensord::worker {

// From now on a fatal signal (SEGV, BUS, ILL, FPE, ABRT, SYS) first sends a DyingRecord on
// `channel_fd` and then ends the process as it would have: the kernel closes the sockets of a dying
// process only after it has freed the memory, which takes a large model half a second.
// Of SYS, the record names the system call, where a filter raised it.
// Once a process; `channel_fd` stays open.
void SpeakLastWords(int channel_fd, uint64_t incarnation);

// For a process whose filter is about to raise SYS at what is forbidden: sets the handler for it
// again, whatever the model's code has put there. It answers openat itself: /dev/urandom, which the
// runtime opens for each thread that draws numbers and ends the process without, gives another
// `random_fd`; any other file EACCES. All else is fatal.
// REQUIRES: SpeakLastWords; `random_fd` stays open, or is -1.
void AnswerForbiddenCalls(int random_fd);

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
