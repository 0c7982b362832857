# SPDX-License-Identifier: Apache-2.0
"""System calls without a wrapper, for programs that attack a node: Python text that goes before theirs."""

SYSCALLS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    done = libc.syscall(*[ctypes.c_long(word) if isinstance(word, int) else word for word in words])
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
PIDFD_OPEN, PIDFD_GETFD, PIDFD_SEND_SIGNAL, SETNS, KEYCTL, PTRACE = 434, 438, 424, 308, 250, 101
"""
