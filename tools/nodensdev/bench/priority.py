# SPDX-License-Identifier: Apache-2.0
"""Priority for a benchmark, so that other processes of the host affect the figures less.

A real-time policy would also keep the host's own kernel threads off the guest's CPU, for which the
guest then waits a tenth of a second now and then. So it is a nice value, of the process and of its
session, since the kernel may schedule whole sessions against each other. User-mode Linux stays on
one CPU anyway (kernel.py); here it is always the same.
"""
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ..env import machine

NICE = -15
SESSION = Path("/proc/self/autogroup")      # "/autogroup-7 nice 0"; takes a nice value


@contextlib.contextmanager
def raised(kernel: str) -> Iterator[None]:
    """Everything that is started within goes first, User-mode Linux on the last CPU."""
    cpus, nice, session = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0), session_nice()
    try:
        if kernel == "uml":
            os.sched_setaffinity(0, {max(cpus)})
        set_nice(NICE, NICE if session is not None else None)
    except PermissionError:
        machine.say("cannot raise the priority; other work on this machine will be in the figures")
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)
        set_nice(nice, session)


def session_nice() -> int | None:
    """None where the kernel does not group processes by session."""
    try:
        return int(SESSION.read_text().split()[-1])
    except (OSError, IndexError, ValueError):
        return None


def set_nice(process: int, session: int | None) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, process)
    if session is not None:
        SESSION.write_text(str(session))
