# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench bridge`: data, metadata and memory of volumes behind nodens-bridge, beside the bare filesystem and bindfs.

ext4 and tmpfs are measured natively, in a chroot; NFS, with its server in the same kernel, in a guest.
"""
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import build, page_tables
from ..command import Failure
from ..env import cache, chroot, guest, machine, root
from ..project import BUILD, TOP, commit
from . import memory_disk, priority, table

RESULTS = BUILD / "bench"
PAGE = TOP / "docs/bridge.md"
SCRIPT = "tests/component/bridge/bench.py"
VARIANT, KERNEL = "release", "uml-nft"
PROGRAMS = ("src/bridge/nodens-bridge", "tests/component/bridge/file-load")
DEADLINE = 900.0
IN_GUEST = f"""#!/bin/sh
mkdir -p /nodens
cp -a --no-preserve=ownership /share/tree/. /nodens
ip link set lo up
cd /nodens
exec env PYTHONPATH=tools:tests/lib NODENS_VARIANT={VARIANT} python3 -B {SCRIPT} "$@" $FILES/result.json
"""

NATIVE, STORAGE = ("ext4", "tmpfs"), ("ext4", "tmpfs", "nfs4")
TITLES = {"ext4": "ext4, natively", "tmpfs": "tmpfs, natively", "nfs4": "NFS 4.2, in a guest"}
WAYS = {"bare": "bare", "bridge": "bridge", "copied": "bridge, `--no-passthrough`", "bindfs": "bindfs"}
DATA = {"write": "sequential write", "read": "sequential read, cached", "read-cold": "sequential read, not cached",
        "random-read": "random reads of 4 KiB", "random-write": "random writes of 4 KiB",
        "random-write-fsync": "the same with fsync at the end", "mmap-read": "mmap, read", "mmap-write": "mmap, write"}
METADATA = {"create": "create", "stat": "stat, cached", "stat-fresh": "stat, first time", "open": "open and close", "chmod": "chmod",
            "rename": "rename", "unlink": "unlink", "list": "list and stat, per file of 1,000"}
DATA_AIM = {"ext4": 0.8, "tmpfs": 0.8, "nfs4": 0.7}
METADATA_AIM = {"nfs4": 0.4}
MEMORY_AIM_KB = 3000


@dataclass(frozen=True)
class Size:
    """How much is measured: in a guest all is slower."""

    mib: int
    files: int

    def words(self) -> list[str]:
        return ["--mib", str(self.mib), "--files", str(self.files)]


NATIVE_SIZE, GUEST_SIZE = Size(64, 1000), Size(32, 250)


def run_natively(kinds: Sequence[str], rounds: int) -> dict[str, Any]:
    bindfs = root.ensure("storage")
    target = RESULTS / "bridge-raw.json"
    target.unlink(missing_ok=True)
    with chroot.prepared(chroot.Chroot(env={"NODENS_VARIANT": VARIANT}, holds=(bindfs,))) as inside:
        build.ensure(inside, VARIANT)
        with priority.raised("the machine's own"):
            code = inside.run(["python3", "-B", SCRIPT, "--storage", ",".join(kinds), "--rounds", str(rounds), *NATIVE_SIZE.words(),
                               "--over", str(chroot.seen_inside(bindfs)), f"build/bench/{target.name}"])
    if code != 0 or not target.exists():
        raise Failure(f"{SCRIPT} ended with {code}")
    found: dict[str, Any] = json.loads(target.read_text())
    target.unlink()
    return found


def lay_out(share: Path) -> None:
    """The tree as the guest sees it: what the script uses."""
    tree = share / "tree"
    for name in ("tests/lib", "tests/component/bridge", "tools"):
        shutil.copytree(TOP / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in PROGRAMS:
        target = tree / "build" / VARIANT / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / VARIANT / name, target)


def run_in_guest(kinds: Sequence[str], rounds: int) -> dict[str, Any]:
    with chroot.prepared(chroot.Chroot()) as inside:
        build.ensure(inside, VARIANT)
    words = " ".join(["--storage", ",".join(kinds), "--rounds", str(rounds), *GUEST_SIZE.words()])
    with cache.scratch("bench") as share, memory_disk.directory() as work:
        lay_out(share)
        one = guest.Guest(guest.Options(kernel=KERNEL, memory=4096, share=share), work)
        with priority.raised(KERNEL):
            result = one.boot(IN_GUEST.replace('"$@"', words), DEADLINE, output=sys.stderr.fileno())
        if result.end is not guest.End.JOB_DONE or result.exit_code != 0:
            raise Failure(f"{SCRIPT} failed in the guest ({result.end.value}, exit code {result.exit_code}); the end of its console:\n"
                          f"{result.console_tail()}")
        found: dict[str, Any] = json.loads((result.files / "result.json").read_text())
    return found


def run(kinds: Sequence[str], rounds: int) -> dict[str, Any]:
    """The raw times of each kind of storage, with where they come from."""
    machine.need_root("mounting filesystems")
    RESULTS.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    kernels: dict[str, str] = {}
    for measure, chosen in ((run_natively, [kind for kind in kinds if kind in NATIVE]),
                            (run_in_guest, [kind for kind in kinds if kind not in NATIVE])):
        if chosen:
            found = measure(chosen, rounds)
            results |= found["results"]
            kernels |= dict.fromkeys(chosen, found["kernel"])
    return {"commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime()), "rounds": rounds, "cpus": os.cpu_count(),
            "load": os.getloadavg()[0], "kernels": kernels, "results": results}


def save(data: dict[str, Any]) -> Path:
    path = RESULTS / f"bridge-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    return path


# ---- figures ----

Samples = list[list[int]]       # nanoseconds and operations of each round


def ratio(times: dict[str, Samples], way: str) -> float:
    """The speed beside the bare filesystem's, round by round."""
    return statistics.median(bare[0] / ours[0] for bare, ours in zip(times["bare"], times[way], strict=True))


def megabytes(samples: Samples) -> float:
    return statistics.median(count / spent * 1000 for spent, count in samples)


def microseconds(samples: Samples) -> float:
    return statistics.median(spent / count / 1000 for spent, count in samples)


def cells(title: str, times: dict[str, Samples], data: bool) -> list[str]:
    found = [title]
    for way in WAYS:
        value = megabytes(times[way]) if data else microseconds(times[way])
        found.append(f"{value:,.0f}" if value >= 100 else f"{value:.1f}")
        if way != "bare":
            found.append(f"{ratio(times, way):.2f}")
    return found


def rows(one: dict[str, Any]) -> list[list[str]]:
    """Of one kind of storage."""
    found = [["", *(word for way, title in WAYS.items() for word in ([title] if way == "bare" else [title, "x bare"]))]]
    found += [cells(f"{title} (MB/s)", one["times"][name], True) for name, title in DATA.items() if name in one["times"]]
    found += [cells(f"{title} (us)", one["times"][name], False) for name, title in METADATA.items()]
    memory = [word for way in WAYS if way != "bare" for word in (f"{one['memory_kb'][way] * 1024 / 1e6:.1f}", "")]
    return [*found, ["memory of an idle volume (MB)", "", *memory]]


def misses(data: dict[str, Any]) -> list[str]:
    """Goals of nodens-bridge that were not reached, with their figures."""
    found = []
    for kind, one in data["results"].items():
        for titles, aims in ((DATA, DATA_AIM), (METADATA, METADATA_AIM)):
            for name, title in titles.items():
                if kind in aims and name in one["times"] and (value := ratio(one["times"][name], "bridge")) < aims[kind]:
                    found.append(f"{TITLES[kind]}: {title}: {value:.2f} x bare, goal {aims[kind]}")
        if one["memory_kb"]["bridge"] > MEMORY_AIM_KB:
            found.append(f"{TITLES[kind]}: memory {one['memory_kb']['bridge']:,} kB, goal {MEMORY_AIM_KB:,} kB")
    return found


def as_text(data: dict[str, Any]) -> str:
    parts = []
    for kind, one in data["results"].items():
        lines = rows(one)
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        parts.append(TITLES[kind] + "\n" + "\n".join(
            first.ljust(widths[0]) + "".join("  " + cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
            for first, *rest in lines))
    return "\n\n".join(parts)


def page_from(page: str, data: dict[str, Any]) -> str:
    """The page with its tables replaced."""
    tables = {kind: table.as_markdown(rows(data["results"][kind])) + "\n" for kind in STORAGE}
    missed = misses(data)
    tables["goals"] = "".join(f"- {one}\n" for one in missed) if missed else "All are met.\n"
    kernels = " and ".join(sorted(set(data["kernels"].values())))
    return page_tables.replaced(page, PAGE.name, tables, data, f"{data['rounds']} rounds, {data['cpus']} CPUs, Linux {kernels}")


def write_document(data: dict[str, Any]) -> None:
    PAGE.write_text(page_from(PAGE.read_text(), data))
