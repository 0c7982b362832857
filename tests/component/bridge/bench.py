# SPDX-License-Identifier: Apache-2.0
"""Benchmark of a volume behind nodens-bridge, the bare filesystem and bindfs in one run: `tools/dev bench bridge`.

Each way to the same storage has a directory and a process (file-load.c), which are there all the time. A load runs on one way after
the other before the next load follows, so that other work of the machine affects all alike. Writes the times as JSON.
"""
import argparse
import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from nodenstest import bridged, storage
from nodenstest.bridged import Volume
from nodenstest.runtimes import program

USER = 1000                 # of the pod, and of the host where no pod is
LISTED = 1000               # files of a directory that is listed
DATA = ("write", "read", "read-cold", "random-read", "random-write", "random-write-fsync", "mmap-read", "mmap-write")
OWN_FILES = ("create", "stat", "chmod", "open", "rename", "unlink")
GIVEN_FILES = ("stat-fresh", "list")        # that another client has made
WAYS = ("bare", "bridge", "copied", "bindfs")
OPTIONS = {"bridge": (), "copied": ("--no-passthrough",)}
Times = dict[str, dict[str, list[tuple[int, int]]]]     # by load and way: nanoseconds and operations of each round


class Load:
    """The process that uses a volume."""

    def __init__(self, volume: Volume, served: Path, arguments: list[str]) -> None:
        self.volume, self.served = volume, served
        theirs, ours = os.pipe(), os.pipe()

        def execute() -> None:
            os.dup2(theirs[0], 0)
            os.dup2(ours[1], 1)
            os.execv(program("tests/component/bridge/file-load"), ["file-load", *arguments])

        self.running = volume.start(execute, USER, USER)
        os.close(theirs[0])
        os.close(ours[1])
        self.lines: IO[str] = os.fdopen(theirs[1], "w", buffering=1)
        self.answers: IO[str] = os.fdopen(ours[0])

    def run(self, *words: str) -> tuple[int, int]:
        self.lines.write(" ".join(words) + "\n")
        nanoseconds, operations = self.answers.readline().split()
        return int(nanoseconds), int(operations)

    def end(self) -> None:
        self.lines.close()
        self.answers.close()
        os.close(self.running.reader)
        os.waitpid(self.running.pid, 0)

    def drop_cache(self) -> None:
        """The pages of the way's own filesystem, then those of the filesystem below."""
        self.run("drop-cache")
        below = os.open(self.volume.source / "data", os.O_RDONLY)
        os.fsync(below)
        os.posix_fadvise(below, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(below)

    def make_files(self, name: str) -> None:
        """Files that no cache has seen, because they come from the server."""
        top = self.served / name
        top.mkdir()
        for number in range(LISTED):
            (top / f"f{number}").touch()


@contextlib.contextmanager
def bindfs(source: Path, target: Path) -> Iterator[Volume]:
    target.mkdir()
    with storage.driver(target, "bindfs", "-f", source, target):
        try:
            yield Volume(source, target)
        finally:
            subprocess.run(["umount", "--lazy", str(target)], check=True)


@contextlib.contextmanager
def volume_of(way: str, source: Path, base: Path, namespace: str) -> Iterator[Volume]:
    if way == "bare":
        yield Volume(source, source)
    elif way == "bindfs":
        with bindfs(source, base / way) as volume:
            yield volume
    else:
        with bridged.bridge(source, base / way, namespace, *OPTIONS[way]) as volume:
            yield volume


def memory_kb(volume: Volume) -> int:
    """PSS of the processes that serve a volume."""
    def pss(pid: int) -> int:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return sum(map(pss, volume.family()))


def measure_memory(place: storage.Place, base: Path, namespace: str) -> dict[str, int]:
    """Of one volume at a time, because volumes share pages."""
    found = {}
    for way in WAYS[1:]:
        name = f"memory-{way}"
        (place.server / name).mkdir()
        os.chown(place.server / name, USER, USER)
        with volume_of(way, place.client / name, base, namespace) as volume:
            volume.run(lambda: Path("file").write_text("x") + len(os.listdir()), USER, USER)
            found[way] = memory_kb(volume)
        (base / way).rmdir()
    return found


def one_round(loads: dict[str, Load], number: int, kind: str, times: Times) -> None:
    turn = [*WAYS[number % len(WAYS):], *WAYS[:number % len(WAYS)]]
    for name in (*DATA, *OWN_FILES, *GIVEN_FILES):
        if name == "read-cold" and kind == "tmpfs":
            continue
        if name == "read-cold":
            for way in turn:
                loads[way].drop_cache()
        directory = f"{name}-{number}"
        if name in GIVEN_FILES:
            for way in turn:
                loads[way].make_files(directory)
        for way in turn:
            times.setdefault(name, {}).setdefault(way, []).append(loads[way].run(name, *([directory] if name in GIVEN_FILES else [])))


def measure(kind: str, rounds: int, arguments: list[str]) -> dict[str, object]:
    times: Times = {}
    with ExitStack() as stack:
        namespace = stack.enter_context(bridged.user_namespace())
        base, place = stack.enter_context(bridged.directory()), stack.enter_context(storage.mounted(kind))
        memory = measure_memory(place, base, namespace)
        loads = {}
        for way in WAYS:
            (place.server / way).mkdir()
            os.chown(place.server / way, USER, USER)
            volume = stack.enter_context(volume_of(way, place.client / way, base, namespace))
            loads[way] = Load(volume, place.server / way, arguments)
            stack.callback(loads[way].end)
        one_round(loads, 0, kind, {})       # fills caches, and maps what is mapped at first use
        for number in range(1, rounds + 1):
            one_round(loads, number, kind, times)
    return {"memory_kb": memory, "times": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", required=True, help="kinds of nodenstest.storage, separated by commas")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--mib", required=True, help="size of the file")
    parser.add_argument("--files", required=True, help="that are created, renamed and so on")
    parser.add_argument("--over", help="a root that has bindfs, to be laid over /usr")
    parser.add_argument("output", type=Path)
    args = parser.parse_args()
    if args.over:
        storage.run("mount", "-t", "overlay", "-o", f"lowerdir={args.over}/usr:/usr", "overlay", "/usr")
    found = {kind: measure(kind, args.rounds, [args.mib, args.files]) for kind in args.storage.split(",")}
    args.output.write_text(json.dumps({"results": found, "kernel": os.uname().release.split("-")[0]}))


if __name__ == "__main__":
    main()
