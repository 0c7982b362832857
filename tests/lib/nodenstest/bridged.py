# SPDX-License-Identifier: Apache-2.0
"""Volumes behind nodens-bridge, and processes of a pod with a user namespace that use them."""
import contextlib
import ctypes
import os
import pickle
import select
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from nodenstest.runtimes import program

FIRST, IDS = 1_000_000, 65536
DEADLINE = 60
T = TypeVar("T")


class Failed(Exception):
    """A process of the pod died or raised something else than an OSError."""


@contextlib.contextmanager
def user_namespace(first: int = FIRST) -> Iterator[str]:
    """A user namespace of a pod, as the path of its file; its IDs are `first` and those behind it on the host."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.unshare(os.CLONE_NEWUSER)
        os.write(told, b"x")
        signal.pause()
        os._exit(1)
    try:
        os.read(ready, 1)
        for kind in ("uid", "gid"):
            Path(f"/proc/{pid}/{kind}_map").write_text(f"0 {first} {IDS}\n")
        yield f"/proc/{pid}/ns/user"
    finally:
        os.close(ready)
        os.close(told)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@dataclass
class Volume:
    """A directory of the host, and where the pod sees it. Without a namespace it is processes of the host that see it."""

    source: Path
    target: Path
    namespace: str = ""

    def start(self, function: Callable[[], T], uid: int = 0, gid: int = 0, groups: tuple[int, ...] = ()) -> "Running[T]":
        """Starts a function in the pod, in the volume's directory."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try:
                if self.namespace:
                    with open(self.namespace, "rb") as namespace:
                        os.setns(namespace.fileno(), os.CLONE_NEWUSER)
                os.setresuid(0, 0, 0)        # so that the next change drops the capabilities
                os.setgroups(list(groups))
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
                os.chdir(self.target)
                said: tuple[str, Any] = ("value", function())
            except OSError as error:
                said = ("error", error)
            except BaseException:               # whatever it is, the test shows it
                said = ("failure", traceback.format_exc())
            with open(writer, "wb") as out:
                pickle.dump(said, out)
            os._exit(0)
        os.close(writer)
        return Running(pid, reader)

    def run(self, function: Callable[[], T], uid: int = 0, gid: int = 0, groups: tuple[int, ...] = ()) -> T:
        """The function's value; raises its OSError."""
        return self.start(function, uid, gid, groups).result()

    def each(self, *functions: Callable[[], object], uid: int = 0, gid: int = 0) -> None:
        """One after the other, in one process."""
        def work() -> None:
            for function in functions:
                function()
        self.run(work, uid, gid)

    def server(self) -> int:
        """The process that works on requests."""
        return max(self.family(), key=lambda pid: len(os.listdir(f"/proc/{pid}/task")))

    def family(self) -> list[int]:
        """All processes of the volume."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.fsencode(self.target) in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


def kill(pid: int) -> bool:
    """Kills a process of a bridge, at once where the kernel is a usual one; False if it does not exist any more.

    User-mode Linux has no get_user_pages_fast(). A signal that comes while such a kernel copies a request to the server fails the
    request with EIO, whatever the server does; so all threads leave the kernel before.
    """
    with contextlib.suppress(ProcessLookupError):
        if "User Mode Linux" in Path("/proc/cpuinfo").read_text():
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: all(is_stopped(task) for task in Path(f"/proc/{pid}/task").glob("*")), "the stop of a server")
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def is_stopped(task: Path) -> bool:
    """Or gone."""
    with contextlib.suppress(OSError):
        return (task / "stat").read_text().rpartition(")")[2].split()[0] in "TXZ"
    return True


@dataclass
class Running(Generic[T]):
    """A function that runs in the pod."""

    pid: int
    reader: int

    def is_alive(self) -> bool:
        """Whether it has not said its result, and was not killed."""
        return not select.select([self.reader], [], [], 0)[0]

    def result(self) -> T:
        with open(self.reader, "rb") as source:
            said = source.read()
        os.waitpid(self.pid, 0)
        if not said:
            raise Failed("the process was killed")
        kind, value = pickle.loads(said)
        if kind == "error":
            raise value
        if kind == "failure":
            raise Failed(value)
        return value


@contextlib.contextmanager
def directory(memory: bool = False) -> Iterator[Path]:
    """A directory that users of the pod can reach. In memory a sync takes no time, however busy the disk is."""
    path = Path(tempfile.mkdtemp(prefix="bridge-", dir="/var/tmp"))
    if memory:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "bridge", path], check=True)
    path.chmod(0o755)
    try:
        yield path
    finally:
        if memory:
            subprocess.run(["umount", "--lazy", path], check=True)
        shutil.rmtree(path, ignore_errors=True)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {DEADLINE} s"
        time.sleep(0.01)


@contextlib.contextmanager
def bridge(source: Path, target: Path, namespace: str, *options: str) -> Iterator[Volume]:
    """nodens-bridge, from the start until it has ended after the unmount."""
    target.mkdir(exist_ok=True)
    how = [] if "--idmap" in options else ["--userns", namespace]
    subprocess.run([program("src/bridge/nodens-bridge"), *how, "--first-id", str(FIRST), *options, str(source), str(target)],
                   check=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    volume = Volume(source, target, namespace)
    try:
        yield volume
    finally:
        subprocess.run(["umount", "--lazy", str(target)], check=True)
        wait_until(lambda: not volume.family(), "the end of nodens-bridge after the unmount")


def can_compare_processes() -> bool:
    """Whether the kernel has what nodens-bridge --replace needs."""
    kcmp, files = 312, 2
    return ctypes.CDLL(None).syscall(kcmp, os.getpid(), os.getpid(), files, 0, 0) == 0


def replace(volume: Volume) -> None:
    """Another nodens-bridge continues the volume."""
    subprocess.run([program("src/bridge/nodens-bridge"), "--replace", str(volume.server()), str(volume.target)],
                   check=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def idmapped(source: Path, target: Path, namespace: str) -> Iterator[None]:
    target.mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", "--options", f"X-mount.idmap={namespace}", str(source), str(target)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(target)], check=True)
