# SPDX-License-Identifier: Apache-2.0
"""System calls on files of all types, by owners and strangers, in directories of all modes: what each gives and leaves.

The same cases are run on two filesystems, and what they gave is compared. A case is an operation on the name `t` of a directory of
its own, beside which lies the file `f`.
"""
import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWNER, MEMBER, STRANGER = 1000, 1001, 1002
GROUP, OTHER_GROUP = 1000, 1005
THEN = 1_000_000_000            # a time that operations set
NAME = "t"
Outcome = tuple[Any, ...]


@dataclass(frozen=True)
class Caller:
    """Who makes a system call."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...] = ()


CALLERS = (Caller("root", 0, 0), Caller("owner", OWNER, GROUP, (OTHER_GROUP,)), Caller("member", MEMBER, MEMBER, (GROUP,)),
           Caller("stranger", STRANGER, STRANGER))


def owned(path: Path, mode: int, uid: int = OWNER, gid: int = GROUP) -> None:
    os.chown(path, uid, gid, follow_symlinks=False)
    if not path.is_symlink():
        path.chmod(mode)


def file(mode: int, uid: int = OWNER) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_text("0123456789")
        owned(path, mode, uid)
    return make


def directory(mode: int, *names: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        for name in names:
            (path / name).touch()
        owned(path, mode)
    return make


def link_to(target: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.symlink_to(target)
        owned(path, 0)
    return make


def fifo(path: Path) -> None:
    os.mkfifo(path)
    owned(path, 0o644)


def two_names(path: Path) -> None:
    file(0o640)(path)
    os.link(path, path.with_name("u"))


# What the name is before.
OBJECTS: dict[str, Callable[[Path], None]] = {
    "nothing": lambda path: None, "file": file(0o644), "private file": file(0o600), "shared file": file(0o666, uid=0),
    "set-ID file": file(0o6755), "file with two names": two_names, "directory": directory(0o755), "full directory": directory(0o777, "x"),
    "link": link_to("f"), "link to nothing": link_to("missing"), "link to itself": link_to(NAME), "fifo": fifo,
}
# The mode and the owner of the directory in which it lies.
PARENTS: dict[str, tuple[int, int]] = {"plain": (0o755, OWNER), "open": (0o777, 0), "sticky": (0o1777, 0), "set-group-ID": (0o2775, OWNER),
                                       "without write": (0o555, OWNER), "private": (0o700, OWNER)}


# ---- operations: each gives what can be compared, or raises an OSError ----

def opened(flags: int, mode: int = 0o666) -> Callable[[], Any]:
    def operation() -> Any:
        fd = os.open(NAME, flags | os.O_NONBLOCK, mode)
        try:
            found = os.fstat(fd)
            text = os.read(fd, 20) if stat.S_ISREG(found.st_mode) and not flags & os.O_WRONLY else b""
            if stat.S_ISREG(found.st_mode) and flags & (os.O_WRONLY | os.O_RDWR):
                os.write(fd, b"abc")
            return text, os.fstat(fd).st_size
        finally:
            os.close(fd)
    return operation


def attribute(name: str) -> Callable[[], Any]:
    def operation() -> Any:
        os.setxattr(NAME, name, b"value", follow_symlinks=False)
        return os.getxattr(NAME, name, follow_symlinks=False), name in os.listxattr(NAME, follow_symlinks=False)
    return operation


def made_link() -> None:
    os.link(NAME, "n", follow_symlinks=False)


def times(*seconds: int) -> Callable[[], None]:
    def operation() -> None:
        os.utime(NAME, times=seconds if seconds else None)      # type: ignore[arg-type]
    return operation


OPERATIONS: dict[str, Callable[[], Any]] = {
    "open to read": opened(os.O_RDONLY), "open to write": opened(os.O_WRONLY), "open for both": opened(os.O_RDWR),
    "open or create": opened(os.O_RDWR | os.O_CREAT, 0o640), "create": opened(os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o6777),
    "truncate by open": opened(os.O_WRONLY | os.O_TRUNC), "append": opened(os.O_WRONLY | os.O_APPEND),
    "open a directory": opened(os.O_RDONLY | os.O_DIRECTORY), "open no link": opened(os.O_RDONLY | os.O_NOFOLLOW),
    "create without a name": lambda: os.close(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)),
    "stat": lambda: stat.S_IFMT(os.stat(NAME).st_mode), "lstat": lambda: os.lstat(NAME).st_mode, "readlink": lambda: os.readlink(NAME),
    "list": lambda: sorted(os.listdir(NAME)), "list the parent": lambda: sorted(os.listdir(".")),
    "may read": lambda: os.access(NAME, os.R_OK), "may write": lambda: os.access(NAME, os.W_OK),
    "may execute": lambda: os.access(NAME, os.X_OK),
    "mkdir": lambda: os.mkdir(NAME, 0o777), "mkfifo": lambda: os.mkfifo(NAME, 0o666), "symlink": lambda: os.symlink("f", NAME),
    "socket": lambda: os.mknod(NAME, stat.S_IFSOCK | 0o666),
    "rmdir": lambda: os.rmdir(NAME), "unlink": lambda: os.unlink(NAME), "link": made_link, "link over": lambda: os.link("f", NAME),
    "rename": lambda: os.rename(NAME, "n"), "rename over a file": lambda: os.rename(NAME, "f"),
    "rename a file over": lambda: os.rename("f", NAME),
    "rename into": lambda: os.rename("f", f"{NAME}/f"), "rename into itself": lambda: os.rename(NAME, f"{NAME}/n"),
    "chmod 600": lambda: os.chmod(NAME, 0o600), "chmod 4755": lambda: os.chmod(NAME, 0o4755), "chmod 2755": lambda: os.chmod(NAME, 0o2755),
    "chmod 1777": lambda: os.chmod(NAME, 0o1777), "chown to the stranger": lambda: os.chown(NAME, STRANGER, -1),
    "chgrp to a group of the owner": lambda: os.chown(NAME, -1, OTHER_GROUP), "lchown": lambda: os.lchown(NAME, OWNER, GROUP),
    "chown to the same": lambda: os.chown(NAME, OWNER, GROUP), "chown to nobody else": lambda: os.chown(NAME, -1, -1),
    "truncate to 0": lambda: os.truncate(NAME, 0), "truncate to 4": lambda: os.truncate(NAME, 4),
    "truncate to 8192": lambda: os.truncate(NAME, 8192),
    "set times": times(THEN, THEN), "touch": times(),
    "user attribute": attribute("user.nodens"), "unknown attribute": attribute("nodens"),
    "get an attribute": lambda: os.getxattr(NAME, "user.missing"), "remove an attribute": lambda: os.removexattr(NAME, "user.missing"),
    "a name of 255 bytes": lambda: os.mkdir("n" * 255), "a name of 256 bytes": lambda: os.mkdir("n" * 256),
    "below": lambda: os.lstat(f"{NAME}/x").st_mode, "with a slash": lambda: os.stat(f"{NAME}/").st_mode,
    "create below": lambda: os.mkdir(f"{NAME}/y"),
    "remove .": lambda: os.rmdir(f"{NAME}/."), "remove ..": lambda: os.rmdir(f"{NAME}/.."), "no name": lambda: os.mkdir(""),
}


@dataclass(frozen=True)
class Case:
    """One operation on one object."""

    number: int
    caller: Caller
    parent: str
    object: str
    operation: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.caller.name}, {self.object}, parent {self.parent}"


def cases(step: int = 1) -> Iterator[Case]:
    """All cases, or one of `step`, which should have no factor in common with the number of operations."""
    for number, (caller, parent, thing, operation) in enumerate(itertools.product(CALLERS, PARENTS, OBJECTS, OPERATIONS)):
        if number % step == 0:
            yield Case(number, caller, parent, thing, operation)


def prepare(top: Path, case: Case) -> None:
    """Makes the directory of a case, as the host's root."""
    where = top / str(case.number)
    mode, uid = PARENTS[case.parent]
    where.mkdir()
    OBJECTS[case.object](where / NAME)
    file(0o644)(where / "f")
    owned(where, mode, uid)


def remains(where: str | Path) -> Outcome:
    """What is in the directory, without times that nobody set."""
    found = []
    for name in sorted(os.listdir(where)):
        one = os.lstat(f"{where}/{name}")
        size = one.st_size if not stat.S_ISDIR(one.st_mode) else 0
        links = one.st_nlink if not stat.S_ISDIR(one.st_mode) else 0
        found.append((name[:8], oct(one.st_mode), one.st_uid, one.st_gid, links, size, int(one.st_mtime) == THEN))
    return tuple(found)


def perform(case: Case) -> Outcome:
    """Runs a case as its caller, in the directory above its own."""
    os.umask(0o022)
    back = os.open(".", os.O_PATH)
    try:
        os.chdir(str(case.number))
        value = OPERATIONS[case.operation]()
        result: Outcome = ("gave", value)
    except OSError as error:
        result = ("failed", errno.errorcode[error.errno or 0])
    finally:
        os.fchdir(back)
        os.close(back)
    try:
        seen = remains(str(case.number))
    except OSError as error:
        seen = ("unseen", errno.errorcode[error.errno or 0])
    return (*result, seen)
