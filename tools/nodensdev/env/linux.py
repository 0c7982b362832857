# SPDX-License-Identifier: Apache-2.0
"""The few system calls that Python's library does not have."""
import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2
PR_SET_PDEATHSIG = 1
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    check(libc.unshare(flags), "unshare")


def setns(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        check(libc.setns(descriptor, 0), f"setns {path}")
    finally:
        os.close(descriptor)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    done = libc.mount(source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None)
    check(done, f"mount {source} on {target}")


def unmount(target: str) -> None:
    check(libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    check(libc.syscall(SYS_PIVOT_ROOT[os.uname().machine], new.encode(), old.encode()), f"pivot_root {new}")


def die_with_parent(signal: int) -> None:
    """The calling process gets this signal when the thread that made it ends."""
    check(libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal), 0, 0, 0), "prctl")
