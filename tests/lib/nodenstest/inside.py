# SPDX-License-Identifier: Apache-2.0
"""Containers of rootless podman on alpha, for nodes inside them. The root of the tests is their root, below an overlay of their own."""
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nodenstest import machine
from nodenstest.machine import HOME

# The least with which a node starts in a container.
LEAST = ("--security-opt", "unmask=ALL", "--security-opt", "seccomp=unconfined", "--device", "/dev/net/tun")
DATA = "/var/lib/node"
VOLUME = HOME / "volume"
ENTER: list[str] = []       # words before podman's, as root: how it enters a cgroup


def root_of(name: str, program: str) -> Path:
    roots = sorted(Path(f"/cache/roots/{name}").glob(f"*/{program}"), key=lambda path: path.stat().st_mtime)
    assert roots, f"`tools/dev root {name}` has not been run"
    return roots[-1].parents[len(Path(program).parts) - 1]


@contextlib.contextmanager
def overlaid(root: Path, etc: dict[str, str]) -> Iterator[None]:
    """Another root's programs over ours, and files in /etc; undone at the end."""
    over = Path(f"/tmp/over-{root.parent.name}")
    shutil.rmtree(over, ignore_errors=True)
    over.mkdir()
    for name, text in etc.items():
        path = over / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    back, here = os.open("/proc/self/ns/mnt", os.O_RDONLY), Path.cwd()
    os.unshare(os.CLONE_NEWNS)      # setns() back undoes the mounts from here on
    machine.run("mount", "--make-rprivate", "/")
    machine.run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={root}/usr:/usr", "/usr")
    machine.run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={over}:{root}/etc:/etc", "/etc")
    machine.make_accounts()
    try:
        yield
    finally:
        os.setns(back, os.CLONE_NEWNS)
        os.chdir(here)
        os.close(back)


def make_image() -> Path:
    """A root file system of the user for containers: the programs are ours, mounted into it."""
    top = HOME / "image"
    shutil.rmtree(top, ignore_errors=True)
    for name in ("etc", "tmp", "var/lib", "var/tmp", "root", "run", "usr", "nodens", "cache", "proc", "sys", "dev"):
        (top / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (top / name).symlink_to(f"usr/{name}")
    (top / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nguest:x:1000:1000::/:/bin/sh\n")
    (top / "etc/group").write_text("root:x:0:\nguest:x:1000:\n")
    for name in ("alternatives", "ssl", "nsswitch.conf", "ld.so.cache"):
        source = Path("/etc") / name
        if source.is_dir():
            shutil.copytree(source, top / "etc" / name, symlinks=True)
        elif source.exists():
            shutil.copy(source, top / "etc" / name)
    machine.run("chown", "-R", f"{machine.UID}:{machine.UID}", str(top))
    for name in ("tmp", "var/tmp"):
        (top / name).chmod(0o1777)
    VOLUME.mkdir(exist_ok=True)
    os.chown(VOLUME, machine.UID, machine.UID)
    return top


def podman(*argv: str, check: bool = True, timeout: float = 3 * machine.LIMIT) -> subprocess.CompletedProcess[str]:
    """podman as the user. The kernel of tests without a guest has no cgroup that a user could divide."""
    done = subprocess.run([*ENTER, *machine.as_user("podman", "--cgroup-manager=cgroupfs", "--log-level=error", *argv)], text=True,
                          capture_output=True, timeout=timeout, env=machine.environment(), cwd="/")
    assert not check or done.returncode == 0, f"podman {argv} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done


def words(*options: str) -> list[str]:
    """The options of `podman run` up to the root file system of the container."""
    return ["run", "--cgroups=disabled", "--log-driver=k8s-file", "--events-backend=file", "--volume=/nodens:/nodens:ro",
            "--volume=/usr:/usr:ro", "--volume=/cache:/cache:ro", f"--volume={VOLUME}:{DATA}", *options, "--rootfs", str(HOME / "image")]


def run(*command: str, options: tuple[str, ...] = LEAST, **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command in a container of its own."""
    return podman(*words("--rm", *options), *command, **more)


class Container:
    """A container that stays, with a node whose launcher is its first process."""

    def __init__(self, name: str, *options: str, node: tuple[str, ...] = ()) -> None:
        self.name, self.options, self.node = name, options, node

    def start(self) -> "Container":
        podman("rm", "--force", "--ignore", "--time=0", self.name)
        podman(*words("--detach", f"--name={self.name}", *LEAST, *self.options), machine.PROGRAM, "up", "--inside", f"--data={DATA}",
               *self.node)
        machine.wait_for(lambda: "node started" in self.log() or self.ended(), what=f"the node in the container starts: {self.log()}")
        assert not self.ended(), self.log()
        return self

    def ended(self) -> bool:
        return json.loads(podman("inspect", self.name).stdout)[0]["State"]["Status"] != "running"

    def log(self) -> str:
        done = podman("logs", self.name)
        return done.stdout + done.stderr

    def exec(self, *command: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return podman("exec", self.name, *command, **more)

    def shell(self, *command: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.exec(machine.PROGRAM, "shell", "--", *command, **more)

    def remove(self) -> None:
        podman("rm", "--force", "--time=20", self.name)


@contextlib.contextmanager
def container(name: str, *options: str, node: tuple[str, ...] = ()) -> Iterator[Container]:
    made = Container(name, *options, node=node)
    try:
        yield made.start()
    finally:
        made.remove()
