# SPDX-License-Identifier: Apache-2.0
"""What a command may leave behind on the host: processes, namespaces, mounts, loop devices, network links, files.

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


class Namespaces:
    """Namespaces that had processes, to check that they are empty in the end.

    They are held open meanwhile: the kernel reuses the number of a removed one.
    """

    def __init__(self) -> None:
        self.held: dict[str, int] = {}

    def note(self, pids: list[int]) -> None:
        """Remembers the namespaces that these processes are in and we are not."""
        ours = {os.readlink(f"/proc/self/ns/{kind}") for kind in NAMESPACES}
        for path in [f"/proc/{pid}/ns/{kind}" for pid in pids for kind in NAMESPACES]:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue  # ended meanwhile
            name = os.readlink(f"/proc/self/fd/{descriptor}")
            if name in ours or name in self.held:
                os.close(descriptor)
            else:
                self.held[name] = descriptor

    def inhabited(self) -> dict[str, str]:
        """The namespaces of all processes on the host, each with one such process."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/ns/*"):
            try:
                name = os.readlink(path)
                if name in self.held:
                    found[name] = f"{path}: {(path.parent.parent / 'stat').read_text()[:40]}"
            except OSError:
                continue  # ended meanwhile
        return found

    def wait_until_left(self, seconds: float) -> dict[str, str]:
        """The namespaces that still have processes after a while (a killed process stays in its namespaces until it is reaped)."""
        deadline = time.monotonic() + seconds
        while (still_there := self.inhabited()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return still_there

    def close(self) -> None:
        for descriptor in self.held.values():
            os.close(descriptor)
        self.held.clear()


@dataclass(frozen=True)
class Machine:
    """State of the host itself."""

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
        """The entries that are new."""
        grown = {name: getattr(self, name) - getattr(before, name) for name in ("mounts", "loops", "links", "pinned")}
        return {name: extra for name, extra in grown.items() if extra}


def wait_until_gone(mark: str, seconds: float) -> dict[int, str]:
    """The marked processes that are still there after a while."""
    deadline = time.monotonic() + seconds
    while (left := processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
