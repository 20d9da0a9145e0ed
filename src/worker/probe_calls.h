// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <array>

#include "worker/probe.h"

// The system calls that the probe tries with arguments that do nothing: null pointers, descriptors
// and numbers that nobody has. Where the kernel looks at them, its error says so.
namespace tensord::worker {

struct ProbeCall {
  ActKind kind;
  const char* act;
  long number;
  std::array<long, 5> arguments;
};

inline constexpr ProbeCall kProbeCalls[] = {
    {ActKind::kNetwork, "connect", SYS_connect, {-1}},
    {ActKind::kNetwork, "bind", SYS_bind, {-1}},
    {ActKind::kNetwork, "listen", SYS_listen, {-1}},
    {ActKind::kNetwork, "accept", SYS_accept4, {-1}},
    {ActKind::kNetwork, "send to another socket", SYS_sendto, {-1}},
    {ActKind::kNetwork, "receive from another socket", SYS_recvfrom, {-1}},

    {ActKind::kProcess, "pidfd_open", SYS_pidfd_open, {0}},
    {ActKind::kProcess, "pidfd_getfd", SYS_pidfd_getfd, {-1, -1}},
    {ActKind::kProcess, "pidfd_send_signal", SYS_pidfd_send_signal, {-1}},
    {ActKind::kProcess, "process_madvise", SYS_process_madvise, {-1}},
    {ActKind::kProcess, "clone3", SYS_clone3, {0, 0}},

    // With no path that is any file's, so of the filter they tell, not of files.
    {ActKind::kKernel, "rename", SYS_renameat2, {-1, 0, -1, 0}},
    {ActKind::kKernel, "link", SYS_linkat, {-1, 0, -1, 0}},
    {ActKind::kKernel, "unlink", SYS_unlinkat, {-1, 0}},
    {ActKind::kKernel, "truncate", SYS_truncate, {0}},
    {ActKind::kKernel, "chmod", SYS_fchmodat, {-1, 0}},
    {ActKind::kKernel, "chown", SYS_fchownat, {-1, 0}},
    {ActKind::kKernel, "setxattr", SYS_setxattr, {0}},

    {ActKind::kKernel, "unshare", SYS_unshare, {0}},
    {ActKind::kKernel, "setns", SYS_setns, {-1}},
    {ActKind::kKernel, "mount", SYS_mount, {0}},
    {ActKind::kKernel, "umount", SYS_umount2, {0}},
    {ActKind::kKernel, "pivot_root", SYS_pivot_root, {0}},
    {ActKind::kKernel, "chroot", SYS_chroot, {0}},
    {ActKind::kKernel, "open_tree", SYS_open_tree, {-1}},
    {ActKind::kKernel, "move_mount", SYS_move_mount, {-1, 0, -1, 0}},
    {ActKind::kKernel, "fsopen", SYS_fsopen, {0}},
    {ActKind::kKernel, "io_uring_setup", SYS_io_uring_setup, {0}},
    {ActKind::kKernel, "io_setup", SYS_io_setup, {0}},
    {ActKind::kKernel, "bpf", SYS_bpf, {-1}},
    {ActKind::kKernel, "perf_event_open", SYS_perf_event_open, {0}},
    {ActKind::kKernel, "userfaultfd", SYS_userfaultfd, {-1}},
    {ActKind::kKernel, "keyctl", SYS_keyctl, {-1}},
    {ActKind::kKernel, "add_key", SYS_add_key, {0}},
    {ActKind::kKernel, "request_key", SYS_request_key, {0}},
    {ActKind::kKernel, "open_by_handle_at", SYS_open_by_handle_at, {-1}},
    {ActKind::kKernel, "name_to_handle_at", SYS_name_to_handle_at, {-1}},
    {ActKind::kKernel, "fanotify_init", SYS_fanotify_init, {-1, -1}},
    {ActKind::kKernel, "inotify_init", SYS_inotify_init1, {-1}},
    {ActKind::kKernel, "init_module", SYS_init_module, {0}},
    {ActKind::kKernel, "finit_module", SYS_finit_module, {-1}},
    {ActKind::kKernel, "kexec_load", SYS_kexec_load, {0, -1, 0, -1}},
    {ActKind::kKernel, "reboot", SYS_reboot, {0}},
    {ActKind::kKernel, "swapon", SYS_swapon, {0}},
    {ActKind::kKernel, "syslog", SYS_syslog, {-1}},
    {ActKind::kKernel, "sethostname", SYS_sethostname, {0, -1}},
    {ActKind::kKernel, "set the clock", SYS_clock_settime, {0, 0}},
    {ActKind::kKernel, "personality", SYS_personality, {0xffffffff}},
    {ActKind::kKernel, "setuid 0", SYS_setuid, {0}},
    {ActKind::kKernel, "setgid 0", SYS_setgid, {0}},
    {ActKind::kKernel, "setresuid 0", SYS_setresuid, {0, 0, 0}},
    {ActKind::kKernel, "setgroups", SYS_setgroups, {-1}},
    {ActKind::kKernel, "shmget", SYS_shmget, {-1, 0, 0}},
    {ActKind::kKernel, "semget", SYS_semget, {1, 0, 0}},
    {ActKind::kKernel, "msgget", SYS_msgget, {1, 0}},
    {ActKind::kKernel, "mq_open", SYS_mq_open, {0}},
    {ActKind::kKernel, "vmsplice", SYS_vmsplice, {-1}},
    {ActKind::kKernel, "splice", SYS_splice, {-1, 0, -1}},
    {ActKind::kKernel, "quotactl", SYS_quotactl, {-1}},
    {ActKind::kKernel, "type into the terminal", SYS_ioctl, {0, TIOCSTI, 0}},
};

}  // namespace tensord::worker
