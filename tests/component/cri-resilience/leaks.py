# SPDX-License-Identifier: Apache-2.0
"""Leaks of pods: everything on the host that a runtime creates for them, counted before and after."""
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from nodenstest import pods

DAEMON = pods.CGROUPS / f"{pods.PARENT}-daemon"


@dataclass
class Traces:
    """The objects found, by kind; each entry identifies one."""

    mounts: set[str]
    network_namespaces: set[str]
    cgroups: set[str]
    addresses: set[str]
    processes: set[str]
    directories: set[str]
    links: set[str]

    def beyond(self, before: "Traces") -> dict[str, list[str]]:
        """The new objects, by kind."""
        found = {field.name: sorted(getattr(self, field.name) - getattr(before, field.name)) for field in fields(self)}
        return {name: entries for name, entries in found.items() if entries}


def take(runtime_directory: Path) -> Traces:
    """Looks at all of it; `runtime_directory` is the one in which a runtime of parts.py has everything."""
    return Traces(mounts(), names_in(runtime_directory / "netns") | names_in(Path("/run/netns")), cgroups(),
                  addresses(runtime_directory / "addresses"), processes(), kept(runtime_directory), devices())


def mounts() -> set[str]:
    return {" ".join(line.split()[index] for index in (4, -3)) for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def names_in(directory: Path) -> set[str]:
    return {str(path) for path in directory.iterdir()} if directory.is_dir() else set()


def cgroups() -> set[str]:
    """The pods', and the daemon's with those of its monitors."""
    return {base for top in (pods.CGROUPS / pods.PARENT, DAEMON) if top.is_dir() for base, _, _ in os.walk(top)}


@contextlib.contextmanager
def daemon_cgroup() -> Iterator[list[str]]:
    """The command prefix that starts a daemon in its own cgroup, as systemd does: everything in it belongs to the daemon."""
    DAEMON.mkdir()
    try:
        yield ["sh", "-c", f'echo $$ > {DAEMON}/cgroup.procs; exec "$@"', "sh"]
    finally:
        (DAEMON / "cgroup.kill").write_text("1")
        pods.remove_cgroup(DAEMON)


def addresses(directory: Path) -> set[str]:
    """The addresses allocated by host-local."""
    return {str(path) for path in directory.glob("*/*") if path.name != "lock" and not path.name.startswith("last_reserved_ip")}


def processes() -> set[str]:
    """Of this pid namespace, by what they run. Kernel threads have no command line."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if words or state == "Z":
            found.add(f"{entry.name} {words[:160]}" if state != "Z" else f"{entry.name} a zombie")
    return found


def kept(directory: Path) -> set[str]:
    """A runtime's own directories for pods and containers."""
    places = ("state/pods", "state/containers", "run/pods", "run/containers", "run/crun")
    return {str(path) for name in places if (directory / name).is_dir() for path in (directory / name).iterdir()}


def devices() -> set[str]:
    """The links of the network namespace that we are in; /sys may show another one."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    return {line.split(":")[0].strip() for line in lines}
