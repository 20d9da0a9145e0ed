// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
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
constexpr std::array kStage1 = {
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
    "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler",
    "sched_get_priority_max", "sched_get_priority_min", "getpriority", "getcpu", "exit",
    "exit_group", "restart_syscall", "clock_gettime", "clock_getres", "clock_nanosleep",
    "nanosleep", "gettimeofday", "time", "times",
    // Signals, of its own.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
    "rt_sigsuspend", "sigaltstack", "pause",
    // Who and where am I.
    "gettid", "getpid", "getppid", "getpgrp", "getpgid", "getsid", "getuid", "geteuid", "getgid",
    "getegid", "getresuid", "getresgid", "getgroups", "getrlimit", "getrusage", "sysinfo", "uname",
    "getrandom", "arch_prctl", "capget", "capset",
    // What stage 2 takes: both can only forbid more.
    "landlock_create_ruleset", "landlock_restrict_self"};

// Of those, what runs of a warm model need: the traced ones (futex, memory, the channel), and what
// its threads and libraries ask for now and then.
constexpr std::array kStage2 = {
    "brk", "mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "mlock", "mlock2",
    "munlock", "membarrier", "get_mempolicy", "set_mempolicy", "mbind",
    // Whether a file exists: the runtime goes up from a path to the first directory that does, and
    // never ends where not even / exists.
    "access", "faccessat", "faccessat2",
    // Of descriptors that it has.
    "read", "pread64", "readv", "write", "writev", "close", "lseek", "fstat", "fstatfs", "poll",
    "ppoll", "select", "pselect6",
    // Threads and time.
    "futex", "futex_waitv", "set_robust_list", "get_robust_list", "rseq", "sched_yield",
    "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max",
    "sched_get_priority_min", "getpriority", "getcpu", "exit", "exit_group", "restart_syscall",
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "times",
    // Signals, of its own.
    "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "sigaltstack",
    // Who and where am I.
    "gettid", "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrlimit",
    "getrusage", "sysinfo", "uname", "getrandom", "arch_prctl"};

// Calls that name files. Refused with EACCES, so that an operation that looks for one, or a library
// that is opened late, fails as it would where the file may not be read.
constexpr std::array kFiles = {
    "open",     "creat",      "stat",     "lstat",      "newfstatat", "statx",     "statfs",
    "readlink", "readlinkat", "getdents", "getdents64", "getcwd",     "chdir",     "mkdir",
    "mkdirat",  "rmdir",      "unlink",   "unlinkat",   "rename",     "renameat",  "renameat2",
    "link",     "linkat",     "symlink",  "symlinkat",  "chmod",      "fchmodat",  "chown",
    "lchown",   "fchownat",   "truncate", "utime",      "utimes",     "utimensat", "futimesat",
    "mknod",    "mknodat"};

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
constexpr uint32_t kSetFilter = 1;              // SECCOMP_SET_MODE_FILTER
constexpr uint32_t kSetVmaOption = 0x53564d41;  // PR_SET_VMA: names of mappings.

class Filter {
 public:
  // `action`: for calls that no rule names.
  explicit Filter(uint32_t action) : context_(seccomp_init(action)) {}
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
  // Of this thread and those it makes, or of all. Gives 0, or an errno.
  // REQUIRES: no_new_privs is set.
  int Load(bool all_threads) {
    if (context_ == nullptr) return ENOMEM;
    if (error_ != 0) return error_;
    // It is set, and stage 1 forbids to set it again.
    seccomp_attr_set(context_, SCMP_FLTATR_CTL_NNP, 0);
    if (all_threads) seccomp_attr_set(context_, SCMP_FLTATR_CTL_TSYNC, 1);
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

// Conditions on an argument. A filter sees 64 bits of it, where the kernel takes an int and drops
// the upper half: a rule that refuses one number, compared whole, lets the same number pass with
// anything above it. So ints are compared by their lower half.
scmp_arg_cmp MaskedEquals(unsigned argument, scmp_datum_t mask, scmp_datum_t value) {
  return {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}
scmp_arg_cmp Is(unsigned argument, uint32_t value) {
  return MaskedEquals(argument, 0xffffffff, value);
}
// All 64 bits.
scmp_arg_cmp Equals(unsigned argument, scmp_datum_t value) {
  return {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value, .datum_b = 0};
}
scmp_arg_cmp NotEquals(unsigned argument, scmp_datum_t value) {
  return {.arg = argument, .op = SCMP_CMP_NE, .datum_a = value, .datum_b = 0};
}

// What both stages allow, with conditions.
void AddConditional(int channel_fd, Filter* filter) {
  const auto channel = static_cast<uint32_t>(channel_fd);
  for (const char* name : {"recvmsg", "sendmsg", "sendto", "shutdown"}) {
    filter->Add(SCMP_ACT_ALLOW, name, {Is(0, channel)});
  }
  // Threads, not processes, and no new namespaces.
  filter->Add(SCMP_ACT_ALLOW, "clone",
              {MaskedEquals(0, CLONE_THREAD | kCloneNamespaces, CLONE_THREAD)});
  filter->Add(SCMP_ACT_ALLOW, "tgkill", {Is(0, static_cast<uint32_t>(getpid()))});
  filter->Add(SCMP_ACT_ALLOW, "prlimit64", {Is(0, 0)});
  // Compared whole, as where stage 2 refuses all others: each number has one answer.
  filter->Add(SCMP_ACT_ALLOW, "sched_setaffinity", {Equals(0, 0)});
  for (const int command : {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC}) {
    filter->Add(SCMP_ACT_ALLOW, "fcntl", {Is(1, static_cast<uint32_t>(command))});
  }
  for (const uint32_t request : {TCGETS, TIOCGWINSZ, FIONREAD, FIOCLEX}) {
    filter->Add(SCMP_ACT_ALLOW, "ioctl", {Is(1, request)});
  }
  for (const uint32_t option :
       {uint32_t{PR_SET_NAME}, uint32_t{PR_GET_NAME}, uint32_t{PR_GET_DUMPABLE}, kSetVmaOption}) {
    filter->Add(SCMP_ACT_ALLOW, "prctl", {Is(0, option)});
  }
}

// Handlers of all signals but SIGSYS. There is no "masked and not equal", so: of the numbers that
// differ from it in one of the bits that signals have. The kernel knows none above those.
void AddSignalHandlers(Filter* filter) {
  constexpr scmp_datum_t kSignalBits = 0x7f;
  for (scmp_datum_t bit = 1; bit < kSignalBits; bit <<= 1) {
    filter->Add(SCMP_ACT_ALLOW, "rt_sigaction",
                {MaskedEquals(0, bit, bit & ~scmp_datum_t{SIGSYS})});
  }
  // A model that asks for it keeps the handler that is there.
  filter->Add(SCMP_ACT_ERRNO(EPERM), "rt_sigaction", {MaskedEquals(0, kSignalBits, SIGSYS)});
}

void AddAbsent(Filter* filter) {
  for (const char* name : kAbsent) filter->Add(SCMP_ACT_ERRNO(ENOSYS), name);
  for (int number = kFirstNewCall; number <= kLastNewCall; ++number) {
    // futex_waitv is 449, and allowed above.
    if (number != seccomp_syscall_resolve_name("futex_waitv")) {
      filter->AddNumber(SCMP_ACT_ERRNO(ENOSYS), number);
    }
  }
}

}  // namespace

Layer RestrictSystemCalls(int channel_fd) {
  Filter filter(SCMP_ACT_ERRNO(EPERM));
  for (const char* name : kStage1) filter.Add(SCMP_ACT_ALLOW, name);
  AddConditional(channel_fd, &filter);
  filter.Add(SCMP_ACT_ALLOW, "open", {MaskedEquals(1, kOpensForWriting, 0)});
  filter.Add(SCMP_ACT_ALLOW, "openat", {MaskedEquals(2, kOpensForWriting, 0)});
  filter.Add(SCMP_ACT_ALLOW, "seccomp", {Is(0, kSetFilter)});
  AddAbsent(&filter);
  const int error = filter.Load(/*all_threads=*/false);
  if (error != 0) {
    return {.holds = false, .line = base::Cat("seccomp: not applied (", std::strerror(error), ")")};
  }
  return {.holds = true,
          .line = base::Cat("seccomp: ", kStage1.size(), " calls allowed, some with conditions")};
}

Layer SealSystemCalls(int channel_fd) {
  Filter filter(SCMP_ACT_TRAP);
  for (const char* name : kStage2) filter.Add(SCMP_ACT_ALLOW, name);
  for (const char* name : kFiles) filter.Add(SCMP_ACT_ERRNO(EACCES), name);
  // "openat", with which the C library opens, is answered by the handler: last_words.h.
  AddConditional(channel_fd, &filter);
  AddSignalHandlers(&filter);
  filter.Add(SCMP_ACT_ERRNO(EPERM), "sched_setaffinity", {NotEquals(0, 0)});
  AddAbsent(&filter);
  const int error = filter.Load(/*all_threads=*/true);
  if (error != 0) {
    return {.holds = false,
            .line = base::Cat("seccomp: stage 2 not applied (", std::strerror(error), ")")};
  }
  return {.holds = true,
          .line = base::Cat("seccomp: ", kStage2.size(),
                            " calls allowed in all threads, files "
                            "refused, any other call ends the worker")};
}

}  // namespace tensord::worker
