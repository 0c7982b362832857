# SPDX-License-Identifier: Apache-2.0
"""Memory of daemon, per-pod processes and workload: proportional set sizes from /proc."""
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Usage:
    """Kilobytes of PSS, and how many processes they belong to."""

    daemon_kb: int = 0
    pods_kb: int = 0
    pod_processes: int = 0
    strangers: dict[str, int] = field(default_factory=dict)     # new processes of no runtime, by program


def pss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def program(pid: int) -> str:
    """The program's file name; the name in parentheses when there is none (kernel threads)."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)")
    except OSError:
        return ""


def arguments(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")


def processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and program(int(path.name))]


def measure(daemons: frozenset[str], per_pod: frozenset[str], workloads: list[list[str]], known: set[int]) -> Usage:
    """Sorts every process; `known` are those from before the first pod."""
    usage = Usage()
    for pid in processes():
        try:
            name, argv = program(pid), arguments(pid)
            if name in daemons:
                usage.daemon_kb += pss(pid)
            elif name in per_pod:
                usage.pods_kb += pss(pid)
                usage.pod_processes += 1
            elif pid not in known and argv not in workloads:
                usage.strangers[name] = usage.strangers.get(name, 0) + 1
        except (FileNotFoundError, ProcessLookupError):
            continue
    return usage


def mount_lines() -> int:
    return len(Path("/proc/self/mountinfo").read_text().splitlines())
