// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/last_words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "base/check.h"
#include "channel/record.h"

namespace tensord::worker {
namespace {

constexpr int kSystemCallOfFilter = 1;  // SYS_SECCOMP of the kernel's siginfo.
constexpr std::array<int, 6> kFatal = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};

// Encoded beforehand: a handler may not allocate. Written once, before the handlers are set.
struct Words {
  int channel_fd = -1;
  int random_fd = -1;  // Of /dev/urandom.
  std::array<std::string, kFatal.size()> records;
};
Words words;

void Send(int signal, const siginfo_t* info) {
  for (size_t i = 0; i < kFatal.size(); ++i) {
    if (kFatal[i] != signal) continue;
    if (signal == SIGSYS && info->si_code == kSystemCallOfFilter) {
      // Two threads at once write numbers that are both true.
      std::string& record = words.records[i];
      const int32_t number = info->si_syscall;
      std::memcpy(record.data() + record.size() - sizeof(number), &number, sizeof(number));
    }
    send(words.channel_fd, words.records[i].data(), words.records[i].size(),
         MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

void SendAndDie(int signal, siginfo_t* info, void*) {
  Send(signal, info);
  // The handler was taken off on entry (SA_RESETHAND). A fault comes again when this returns; a
  // signal that was sent must be sent again, to this thread, where it is blocked until then.
  syscall(SYS_tgkill, getpid(), static_cast<pid_t>(syscall(SYS_gettid)), signal);
}

// Where a system call's second argument and its result are, in what a signal interrupted.
#if defined(__x86_64__)
const char* PathOf(const ucontext_t& context) {
  return reinterpret_cast<const char*>(context.uc_mcontext.gregs[REG_RSI]);
}
void SetResult(ucontext_t* context, long result) { context->uc_mcontext.gregs[REG_RAX] = result; }
#elif defined(__aarch64__)
const char* PathOf(const ucontext_t& context) {
  return reinterpret_cast<const char*>(context.uc_mcontext.regs[1]);
}
void SetResult(ucontext_t* context, long result) {
  context->uc_mcontext.regs[0] = static_cast<unsigned long long>(result);
}
#endif

void AnswerOrDie(int signal, siginfo_t* info, void* interrupted) {
  const int saved = errno;
  if (info->si_code == kSystemCallOfFilter && info->si_syscall == SYS_openat) {
    auto* context = static_cast<ucontext_t*>(interrupted);
    long fd = -EACCES;
    // The kernel has not looked at the path. One that cannot be read ends the process here.
    if (std::strcmp(PathOf(*context), "/dev/urandom") == 0) {
      fd = fcntl(words.random_fd, F_DUPFD_CLOEXEC, 0);
      if (fd < 0) fd = -errno;
    }
    SetResult(context, fd);
    errno = saved;
    return;
  }
  Send(signal, info);
  // The filter lets no one take this handler off. But the signal is blocked in here, and one that
  // the kernel raises while it is blocked ends the process by it.
  syscall(SYS_socket, -1, 0, 0);
  _exit(128 + SIGSYS);
}

void SetHandler(int signal) {
  struct sigaction action {};
  action.sa_sigaction = SendAndDie;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  TENSORD_CHECK(sigaction(signal, &action, nullptr) == 0);
}

}  // namespace

void SpeakLastWords(int channel_fd, uint64_t incarnation) {
  words.channel_fd = channel_fd;
  for (size_t i = 0; i < kFatal.size(); ++i) {
    words.records[i] = channel::Encode(incarnation, channel::DyingRecord{.signal = kFatal[i]});
  }
  for (const int signal : kFatal) SetHandler(signal);
}

void AnswerForbiddenCalls(int random_fd) {
  words.random_fd = random_fd;
  struct sigaction action {};
  action.sa_sigaction = AnswerOrDie;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  TENSORD_CHECK(sigaction(SIGSYS, &action, nullptr) == 0);
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
