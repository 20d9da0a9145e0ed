// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/last_words.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/check.h"
#include "channel/record.h"

namespace tensord::worker {
namespace {

constexpr std::array<int, 6> kFatal = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};

// Encoded beforehand: a handler may not allocate. Written once, before the handlers are set.
struct Words {
  int channel_fd = -1;
  std::array<std::string, kFatal.size()> records;
};
Words words;

void SendAndDie(int signal) {
  for (size_t i = 0; i < kFatal.size(); ++i) {
    if (kFatal[i] != signal) continue;
    send(words.channel_fd, words.records[i].data(), words.records[i].size(),
         MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  // The handler was taken off on entry (SA_RESETHAND). A fault comes again when this returns; a
  // signal that was sent must be sent again, to this thread, where it is blocked until then.
  syscall(SYS_tgkill, getpid(), static_cast<pid_t>(syscall(SYS_gettid)), signal);
}

}  // namespace

void SpeakLastWords(int channel_fd, uint64_t incarnation) {
  words.channel_fd = channel_fd;
  for (size_t i = 0; i < kFatal.size(); ++i) {
    words.records[i] = channel::Encode(incarnation, channel::DyingRecord{.signal = kFatal[i]});
  }
  for (const int signal : kFatal) {
    struct sigaction action {};
    action.sa_handler = SendAndDie;
    action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    TENSORD_CHECK(sigaction(signal, &action, nullptr) == 0);
  }
}

SignalStack::SignalStack() {
  stack_t stack{};
  stack.ss_sp = stack_;
  stack.ss_size = kBytes;
  TENSORD_CHECK(sigaltstack(&stack, nullptr) == 0);
}

SignalStack::~SignalStack() {
  stack_t stack{};
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
}

}  // namespace tensord::worker
