#!/usr/bin/env python3
# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a command behind a filter of system calls, as a container does.

  in_container.py [CALL ...] -- COMMAND ...

Refused is what Docker's default profile refuses a container without further capabilities, and each
CALL that is named (an older kernel, a stricter profile).
"""

import ctypes
import os
import sys

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NO_NEW_PRIVILEGES = 3  # SCMP_FLTATR_CTL_NNP
EPERM, ENOSYS = 1, 38

DOCKER = """acct add_key bpf clock_adjtime clock_settime create_module delete_module fanotify_init
finit_module fsconfig fsmount fsopen fspick get_mempolicy init_module io_uring_enter
io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie
mbind mount mount_setattr move_mount move_pages name_to_handle_at nfsservctl open_by_handle_at
open_tree perf_event_open pidfd_getfd pivot_root process_vm_readv process_vm_writev ptrace quotactl
quotactl_fd reboot request_key set_mempolicy setdomainname sethostname setns settimeofday stime
swapoff swapon syslog umount umount2 unshare uselib userfaultfd ustat vhangup vm86 vm86old"""


def confine(names):
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    refusals = dict.fromkeys(names, EPERM) | {"clone3": ENOSYS}
    for name, error in refusals.items():
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            continue  # No call of this machine.
        action = ctypes.c_uint32(ERRNO | error)
        if library.seccomp_rule_add(context, action, ctypes.c_int(number), 0) != 0:
            sys.exit(f"in_container.py: no rule for {name}")
    # A container's root keeps what set-user-id programs give.
    library.seccomp_attr_set(context, NO_NEW_PRIVILEGES, 0 if os.geteuid() == 0 else 1)
    if library.seccomp_load(context) != 0:
        sys.exit("in_container.py: the kernel refuses the filter")


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--")
    confine(DOCKER.split() + arguments[:split])
    command = arguments[split + 1 :]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
