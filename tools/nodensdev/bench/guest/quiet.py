# SPDX-License-Identifier: Apache-2.0
"""Waits until the guest is idle: a turn begins when all work of the turn before has ended.

A runtime's answer is not the end of its work: shims exit, the kernel removes namespaces, udev and
systemd look at every device and mount that came or went. On one CPU that falls into the next turn,
which is another subject's. So every turn waits for the guest to be idle, and records how long that
takes: it is work that the subject has left behind.
"""
import time
from pathlib import Path

WINDOW = 0.040      # idle for as long as this counts as idle: longer than a grace period of the kernel
STEP = 0.002
PATIENCE = 3.0      # a guest that is never idle is measured all the same, and the wait shows it


def running() -> int:
    """How many threads could run now, without this one."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1


def wait() -> float:
    """Milliseconds until the guest began to be idle."""
    started = busy = time.perf_counter()
    while (now := time.perf_counter()) - busy < WINDOW and now - started < PATIENCE:
        time.sleep(STEP)
        if running() > 0:
            busy = time.perf_counter()
    return (busy - started) * 1000
