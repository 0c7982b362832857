# SPDX-License-Identifier: Apache-2.0
"""Runs a command as root of a rootless node: `python3 -m nodenstest.in_node disk|memory COMMAND...`, as root in a chroot.

The node belongs to an ordinary user with subordinate IDs. It has a delegated cgroup and a network of its own with the loopback only,
and sees the tree and the cache. Tests find their scratch space by NODENS_SCRATCH: a directory of the host's disk, or of a tmpfs that
the node has mounted, on which idmapped mounts work. pytest's own temporary directories are on such a tmpfs in both cases.
"""
import contextlib
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from . import machine, pods

SCRATCH = {"disk": "/var/lib/t", "memory": "/var/tmp/t"}
IDS = 1000 * 65536      # a block for each pod of a run of the suite
KEPT = ("PATH", "LANG", "PYTHONPATH", "TERM", "NODENS_VARIANT")


@contextlib.contextmanager
def delegated_cgroup() -> Iterator[Path]:
    """A cgroup that the user may manage, as a systemd unit with Delegate= has it. Chroots share the host's cgroups."""
    made = Path(f"/sys/fs/cgroup/nodens-node-test-{uuid.uuid4().hex[:8]}")
    made.mkdir()
    present = (made.parent / "cgroup.controllers").read_text().split()
    wanted = [f"+{name}" for name in ("cpu", "io", "memory", "pids") if name in present]
    if wanted:
        (made.parent / "cgroup.subtree_control").write_text(" ".join(wanted))
    for path in (made, *(made / name for name in ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control"))):
        os.chown(path, machine.UID, machine.UID)
    try:
        yield made
    finally:
        pods.remove_cgroup(made)


def launch(place: str, command: list[str], cgroup: Path) -> int:
    data = tempfile.mkdtemp(prefix="data-", dir=machine.HOME)
    os.chown(data, machine.UID, machine.UID)
    kept = [f"{name}={os.environ[name]}" for name in KEPT if name in os.environ]
    # volumes of tests are on a tmpfs of the node, also if images and state are on the disk: what the host mounted cannot be idmapped
    kept.append("PYTEST_ADDOPTS=--basetemp=/var/tmp/basetemp")
    inside = ["sh", "-ec", f'mkdir -p {SCRATCH[place]}; cd /nodens; exec "$@"', "sh",
              "env", "HOME=/root", f"NODENS_NODE={place}", f"NODENS_SCRATCH={SCRATCH[place]}", *kept, *command]
    options = ["--name", "tests", "--net", "none", "--data", data, "--bind", "/nodens:ro,/cache:ro"]
    node = [machine.PROGRAM, "run", *options, "--", *inside]
    enter = ["sh", "-ec", f'echo $$ >{cgroup}/cgroup.procs; exec "$@"', "sh"]
    return subprocess.run([*enter, *machine.as_user(*node)], env=machine.environment(), cwd="/").returncode


def main(place: str, *command: str) -> int:
    machine.SUBIDS = IDS
    machine.make_user()
    os.chmod("/dev/fuse", 0o666)    # as udev does
    subprocess.run(["ip", "netns", "add", "alpha"], check=True)    # where as_user() runs
    with delegated_cgroup() as cgroup:
        return launch(place, list(command), cgroup)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
