# SPDX-License-Identifier: Apache-2.0
"""Going first: what else runs on the machine should not be in the figures, so the bench and its guest get a high priority.

Theory of operation
  A priority (nice) is inherited by the guest's processes. But where the kernel schedules whole sessions against each other
  (autogroup), it counts only within one, and User-mode Linux makes a session of its own after it has started. So
  a thread looks at the processes below us, again and again, and raises every session that it has not seen.
"""
import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from .. import machine

PRIORITY = -15
INTERVAL = 1.0


def below(pid: int) -> Iterator[int]:
    """All processes that descend from one, itself included."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            yield from below(int(child))


def raise_sessions(seen: set[str]) -> None:
    """Raises the sessions of all processes below us that are not in `seen` yet."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # they come and go
        for pid in below(os.getpid()):
            group = Path(f"/proc/{pid}/autogroup")
            name = group.read_text().split()[0]
            if name not in seen:
                group.write_text(str(PRIORITY))
                seen.add(name)


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Everything started within goes first; afterwards our own session is as before."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    except PermissionError:
        machine.say("cannot raise the priority; other work on this machine will be in the figures")
        yield
        return
    done = threading.Event()
    seen: set[str] = set()
    watcher = threading.Thread(target=watch, args=(done, seen), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        os.setpriority(os.PRIO_PROCESS, 0, before)
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text("0")


def watch(done: threading.Event, seen: set[str]) -> None:
    if not Path("/proc/self/autogroup").exists():
        return
    while not done.wait(INTERVAL):
        raise_sessions(seen)
