# SPDX-License-Identifier: Apache-2.0
"""Going first: what else runs on the machine should not be in the figures, so the guest runs before all ordinary work.

A nice value would not do: where the kernel schedules whole sessions against each other, it counts only within one. So the
guest inherits a real-time policy from us. User-mode Linux has one CPU, and leaves the machine's others alone; QEMU would
take them all, so there it is a nice value.
"""
import contextlib
import os
from collections.abc import Iterator

from .. import machine

NICE = -15


@contextlib.contextmanager
def raised(kernel: str) -> Iterator[None]:
    """Everything that is started within goes first."""
    policy, nice = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    try:
        if kernel == "uml":
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        else:
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except PermissionError:
        machine.say("cannot raise the priority; other work on this machine will be in the figures")
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, nice)
