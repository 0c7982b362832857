# SPDX-License-Identifier: Apache-2.0
"""The server of a bridged volume is killed before and after each system call that it makes for each kind of operation.

Tests in the gate kill it at one of seven calls; `tools/dev test bridge-each-call` at all.
"""
import contextlib
import errno
import fcntl
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import volume_of
from nodenstest import bridged, kill_at
from nodenstest.bridged import Volume

STRIDE = 7
CALLS_MOST = 2000


def touch(name: str, text: bytes = b"") -> None:
    with open(name, "wb") as file:
        file.write(text)


def text_of(name: str) -> bytes:
    with open(name, "rb") as file:
        return file.read()


def fails(function: Callable[[], object], wanted: int) -> None:
    with pytest.raises(OSError) as caught:
        function()
    assert caught.value.errno == wanted, caught.value


def create() -> None:
    fd = os.open("new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640)
    os.write(fd, b"text")
    assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o640
    os.close(fd)
    assert text_of("new") == b"text" and os.listdir(".") == ["new"]


def append() -> None:
    fd = os.open("f", os.O_WRONLY | os.O_APPEND)
    for _ in range(3):
        os.write(fd, b"line\n")
    os.fsync(fd)
    os.close(fd)
    assert text_of("f") == b"line\n" * 3


def make_directory() -> None:
    os.mkdir("d", 0o750)
    assert stat.S_IMODE(os.stat("d").st_mode) == 0o750 and os.stat(".").st_nlink == 3


def remove_directory() -> None:
    os.rmdir("d")
    assert not os.path.exists("d") and os.listdir(".") == ["f"]


def remove() -> None:
    os.unlink("f")
    assert os.listdir(".") == ["d"]


def remove_open() -> None:
    fd = os.open("f", os.O_RDWR)
    os.unlink("f")
    os.write(fd, b"still")
    assert os.fstat(fd).st_nlink == 0 and os.pread(fd, 5, 0) == b"still"
    os.close(fd)
    assert os.listdir(".") == ["d"]


def rename() -> None:
    before = os.stat("f").st_ino
    os.rename("f", "d/g")
    assert os.listdir(".") == ["d"] and os.listdir("d") == ["g"] and os.stat("d/g").st_ino == before


def replace_by_rename() -> None:
    touch("g", b"new")
    os.rename("g", "f")
    assert sorted(os.listdir(".")) == ["d", "f"] and text_of("f") == b"new"


def link() -> None:
    os.link("f", "l")
    assert os.stat("f").st_nlink == 2 and os.stat("l").st_ino == os.stat("f").st_ino
    os.unlink("l")
    assert os.stat("f").st_nlink == 1


def symbolic_link() -> None:
    os.symlink("f", "s")
    assert os.readlink("s") == "f" and os.stat("s").st_ino == os.stat("f").st_ino


def special() -> None:
    os.mkfifo("p", 0o600)
    assert stat.S_ISFIFO(os.stat("p").st_mode)
    os.unlink("p")
    assert not os.path.lexists("p")


def attributes() -> None:
    os.chmod("f", 0o600)
    os.chown("f", 3, 4)
    os.utime("f", (5, 6))
    found = os.stat("f")
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, found.st_atime, found.st_mtime) == (0o600, 3, 4, 5, 6)


def size() -> None:
    os.truncate("f", 9999)
    assert os.stat("f").st_size == 9999
    fd = os.open("f", os.O_RDWR | os.O_TRUNC)
    os.posix_fallocate(fd, 0, 100)
    assert os.fstat(fd).st_size == 100 and os.lseek(fd, 0, os.SEEK_END) == 100
    os.close(fd)


def extended() -> None:
    os.setxattr("f", "user.a", b"1", os.XATTR_CREATE)
    assert os.getxattr("f", "user.a") == b"1" and os.listxattr("f") == ["user.a"]
    os.setxattr("f", "user.a", b"2", os.XATTR_REPLACE)
    assert os.getxattr("f", "user.a") == b"2"
    fails(lambda: os.setxattr("f", "user.a", b"2", os.XATTR_CREATE), errno.EEXIST)
    os.removexattr("f", "user.a")
    fails(lambda: os.removexattr("f", "user.a"), errno.ENODATA)
    fails(lambda: os.setxattr("f", "user.a", b"2", os.XATTR_REPLACE), errno.ENODATA)
    assert os.listxattr("f") == []


def listing() -> None:
    for number in range(5):
        touch(f"d/{number}")
    with os.scandir("d") as entries:
        assert sorted((entry.name, entry.stat().st_size) for entry in entries) == [(str(number), 0) for number in range(5)]


def locks() -> None:
    with open("f", "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        fcntl.flock(file, fcntl.LOCK_EX)
        assert fcntl.fcntl(file, fcntl.F_GETLK, bytes(32))
        fcntl.lockf(file, fcntl.LOCK_UN)
        fcntl.flock(file, fcntl.LOCK_UN)


def unnamed() -> None:
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"unnamed")
    here = os.open(".", os.O_PATH)          # with a descriptor Python passes AT_SYMLINK_FOLLOW
    os.link(f"/proc/self/fd/{fd}", "named", src_dir_fd=here)
    os.close(here)
    os.close(fd)
    assert text_of("named") == b"unnamed"


def refused() -> None:
    """Errors are the same as without a kill."""
    for function, wanted in ((lambda: os.mkdir("d"), errno.EEXIST), (lambda: os.rmdir("absent"), errno.ENOENT),
                             (lambda: os.unlink("d"), errno.EISDIR), (lambda: os.link("f", "d"), errno.EEXIST),
                             (lambda: os.rename("absent", "f"), errno.ENOENT), (lambda: os.symlink("x", "f"), errno.EEXIST),
                             (lambda: os.rename("d", "f"), errno.ENOTDIR), (lambda: os.mkfifo("f"), errno.EEXIST),
                             (lambda: os.open("f", os.O_CREAT | os.O_EXCL), errno.EEXIST)):
        fails(function, wanted)


OPERATIONS: tuple[Callable[[], None], ...] = (
    create, append, make_directory, remove_directory, remove, remove_open, rename, replace_by_rename, link, symbolic_link, special,
    attributes, size, extended, listing, locks, unnamed, refused)
EMPTY = (create, make_directory)        # these begin in an empty directory, the others with a file and a directory


def device_of(server: int) -> int:
    return next(int(entry.name) for entry in Path(f"/proc/{server}/fd").iterdir() if os.readlink(entry).endswith("/fuse"))


def killed_at(volume: Volume, operation: Callable[[], None], number: int) -> bool:
    """Runs the operation in a directory of its own. False if it makes fewer system calls."""
    ready, told = os.pipe()
    go, started = os.pipe()

    def work() -> None:
        place = f"{operation.__name__}-{number}"
        os.mkdir(place)
        os.chdir(place)
        if operation not in EMPTY:
            touch("f")
            os.mkdir("d")
        os.write(told, b"x")
        os.read(go, 1)
        operation()
    running = volume.start(work)
    try:
        os.read(ready, 1)
        server = volume.server()
        with kill_at.armed(server, device_of(server), number) as killer:
            os.write(started, b"x")
            running.result()
            happened = killer.happened()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGKILL)
        raise
    finally:
        for fd in (ready, told, go, started):
            os.close(fd)
    return happened


def at_each_call(volume: Volume, operation: Callable[[], None], stride: int) -> int:
    for number in range(0, CALLS_MOST, stride):
        if not killed_at(volume, operation, number):
            return number
        bridged.wait_until(lambda: len(volume.family()) == 3 and len(os.listdir(f"/proc/{volume.server()}/task")) > 1, "another server")
    raise AssertionError(f"more than {CALLS_MOST} system calls")


def with_kills(kind: str, namespace: str, operation: Callable[[], None], stride: int) -> None:
    with contextlib.ExitStack() as stack:
        assert at_each_call(volume_of(kind, namespace, stack, memory=True), operation, stride) > 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_ends_as_without_kills(served: str, namespace: str, operation: Callable[[], None]) -> None:
    with_kills(served, namespace, operation, STRIDE)


@pytest.mark.nightly
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_ends_as_without_kills_at_any_call(served: str, namespace: str, operation: Callable[[], None]) -> None:
    with_kills(served, namespace, operation, 1)
