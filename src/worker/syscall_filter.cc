// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <initializer_list>

#include "base/text.h"

namespace tensord::worker {
namespace {

// Named by text, so that a name that this machine's kernel or libseccomp does not know is simply
// absent (and thereby refused).
constexpr std::array kAllowed = {
    // Memory. Executable mappings stay possible: oneDNN and XLA make code.
    "brk", "mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "msync", "mlock", "mlock2",
    "munlock", "membarrier", "get_mempolicy", "set_mempolicy", "mbind",
    // Descriptors and files, to read.
    "read", "pread64", "readv", "preadv", "preadv2", "write", "writev", "close", "lseek", "fstat",
    "newfstatat", "stat", "lstat", "statx", "statfs", "fstatfs", "access", "faccessat",
    "faccessat2", "readlink", "readlinkat", "getdents", "getdents64", "getcwd", "chdir", "umask",
    "dup", "dup2", "dup3", "fadvise64", "readahead", "flock", "pipe", "pipe2", "eventfd2", "poll",
    "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
    // Threads and time.
    "futex", "futex_waitv", "set_robust_list", "get_robust_list", "rseq", "set_tid_address",
    "sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_getscheduler",
    "sched_get_priority_max", "sched_get_priority_min", "getpriority", "getcpu", "exit",
    "exit_group", "restart_syscall", "clock_gettime", "clock_getres", "clock_nanosleep",
    "nanosleep", "gettimeofday", "time", "times",
    // Signals, of its own.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
    "rt_sigsuspend", "sigaltstack", "pause",
    // Who and where am I.
    "gettid", "getpid", "getppid", "getpgrp", "getpgid", "getsid", "getuid", "geteuid", "getgid",
    "getegid", "getresuid", "getresgid", "getgroups", "getrlimit", "getrusage", "sysinfo", "uname",
    "getrandom", "arch_prctl", "capget", "capset"};

// Refused with ENOSYS, because their callers know what to do on a kernel without them. clone3's
// flags lie in memory that a filter cannot read; openat2's likewise.
constexpr std::array kAbsent = {"clone3", "openat2", "close_range", "epoll_pwait2",
                                "io_uring_setup"};
// Calls newer than the lists above: as absent, too.
constexpr int kFirstNewCall = 448;
constexpr int kLastNewCall = 480;

constexpr uint64_t kOpensForWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
constexpr uint64_t kCloneNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr uint64_t kSetVmaOption = 0x53564d41;  // PR_SET_VMA: names of mappings.

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM))) {}
  ~Filter() {
    if (context_ != nullptr) seccomp_release(context_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  void Add(uint32_t action, const char* name, std::initializer_list<scmp_arg_cmp> when = {}) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) AddNumber(action, number, when);
  }
  void AddNumber(uint32_t action, int number, std::initializer_list<scmp_arg_cmp> when = {}) {
    if (context_ == nullptr || error_ != 0) return;
    const int rc = seccomp_rule_add_array(context_, action, number,
                                          static_cast<unsigned>(when.size()), when.begin());
    if (rc < 0) error_ = -rc;
  }
  // Gives 0, or an errno.
  int Load() {
    if (context_ == nullptr) return ENOMEM;
    if (error_ != 0) return error_;
    // A binary tree instead of a list: some 8 comparisons a call instead of 100.
    seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    // The filter guards against the kernel's being used, not against code in this process.
    seccomp_attr_set(context_, SCMP_FLTATR_CTL_SSB, 1);
    return -seccomp_load(context_);
  }

 private:
  scmp_filter_ctx context_;
  int error_ = 0;
};

// Conditions on an argument, whole 64 bits of it.
scmp_arg_cmp Equals(unsigned argument, scmp_datum_t value) {
  return {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value, .datum_b = 0};
}
scmp_arg_cmp MaskedEquals(unsigned argument, scmp_datum_t mask, scmp_datum_t value) {
  return {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

void AddConditional(int channel_fd, Filter* filter) {
  const auto channel = static_cast<scmp_datum_t>(channel_fd);
  for (const char* name : {"recvmsg", "sendmsg", "sendto", "shutdown"}) {
    filter->Add(SCMP_ACT_ALLOW, name, {Equals(0, channel)});
  }
  filter->Add(SCMP_ACT_ALLOW, "open", {MaskedEquals(1, kOpensForWriting, 0)});
  filter->Add(SCMP_ACT_ALLOW, "openat", {MaskedEquals(2, kOpensForWriting, 0)});
  // Threads, not processes, and no new namespaces.
  filter->Add(SCMP_ACT_ALLOW, "clone",
              {MaskedEquals(0, CLONE_THREAD | kCloneNamespaces, CLONE_THREAD)});
  filter->Add(SCMP_ACT_ALLOW, "tgkill", {Equals(0, static_cast<scmp_datum_t>(getpid()))});
  filter->Add(SCMP_ACT_ALLOW, "prlimit64", {Equals(0, 0)});
  for (const int command : {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC}) {
    filter->Add(SCMP_ACT_ALLOW, "fcntl", {Equals(1, static_cast<scmp_datum_t>(command))});
  }
  for (const unsigned long request : {TCGETS, TIOCGWINSZ, FIONREAD, FIOCLEX}) {
    filter->Add(SCMP_ACT_ALLOW, "ioctl", {Equals(1, request)});
  }
  for (const uint64_t option :
       {uint64_t{PR_SET_NAME}, uint64_t{PR_GET_NAME}, uint64_t{PR_GET_DUMPABLE}, kSetVmaOption}) {
    filter->Add(SCMP_ACT_ALLOW, "prctl", {Equals(0, option)});
  }
}

}  // namespace

std::string RestrictSystemCalls(int channel_fd) {
  Filter filter;
  for (const char* name : kAllowed) filter.Add(SCMP_ACT_ALLOW, name);
  AddConditional(channel_fd, &filter);
  for (const char* name : kAbsent) filter.Add(SCMP_ACT_ERRNO(ENOSYS), name);
  for (int number = kFirstNewCall; number <= kLastNewCall; ++number) {
    // futex_waitv is 449, and allowed above.
    if (number != seccomp_syscall_resolve_name("futex_waitv")) {
      filter.AddNumber(SCMP_ACT_ERRNO(ENOSYS), number);
    }
  }
  const int error = filter.Load();
  if (error != 0) return base::Cat("seccomp: not applied (", std::strerror(error), ")");
  return base::Cat("seccomp: ", kAllowed.size(), " calls allowed, some with conditions");
}

}  // namespace tensord::worker
