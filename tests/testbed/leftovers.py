# SPDX-License-Identifier: Apache-2.0
"""What a command may leave behind on the machine: processes, namespaces, mounts, loop devices, network links, files.

Processes are known by a mark in their environment, which everything that tools/dev starts inherits; so other work on the
same machine does not disturb the tests.
"""
import os
import time
from dataclasses import dataclass
from pathlib import Path

NAMESPACES = ("net", "mnt", "pid")


def processes(mark: str) -> dict[int, str]:
    """Living processes with the mark, by pid."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if f"NODENS_MARK={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
        except OSError:
            continue  # ended meanwhile
    return found


def namespaces_of(pids: list[int]) -> set[str]:
    """The namespaces that these processes are in and we are not."""
    def links(pid: int | str) -> set[str]:
        try:
            return {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in NAMESPACES}
        except OSError:
            return set()

    return set().union(*(links(pid) for pid in pids)) - links("self")


def inhabited(namespaces: set[str]) -> set[str]:
    """Those of the namespaces that any process on the machine is in."""
    everybody = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return namespaces & namespaces_of(everybody)


@dataclass(frozen=True)
class Machine:
    """What can be seen of the machine itself."""

    mounts: frozenset[str]
    loops: frozenset[str]
    links: frozenset[str]
    pinned: frozenset[str]

    @staticmethod
    def now() -> "Machine":
        pinned = Path("/run/netns")
        return Machine(
            frozenset(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
            frozenset(path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")),
            frozenset(os.listdir("/sys/class/net")),
            frozenset(path.name for path in pinned.iterdir()) if pinned.is_dir() else frozenset())

    def more_than(self, before: "Machine") -> dict[str, frozenset[str]]:
        """What is there now and was not before."""
        grown = {name: getattr(self, name) - getattr(before, name) for name in ("mounts", "loops", "links", "pinned")}
        return {name: extra for name, extra in grown.items() if extra}


def wait_until_gone(mark: str, seconds: float) -> dict[int, str]:
    """The marked processes that are still there after a while."""
    deadline = time.monotonic() + seconds
    while (left := processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
