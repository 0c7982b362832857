# SPDX-License-Identifier: Apache-2.0
"""The contents of a tree: every path with everything a container can see of it, to compare with another tree."""
import contextlib
import ctypes
import hashlib
import os
import stat
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HIDDEN_XATTRS = ("user.overlay.", "trusted.overlay.")    # overlayfs's own marks, which the merged view does not show anyway
MS_RDONLY = 1


@dataclass(frozen=True)
class Entry:
    """A path's metadata and contents. Directories have no size of their own: it is the filesystem's."""

    kind: str
    mode: int
    uid: int
    gid: int
    size: int
    mtime_ns: int
    target: str
    device: int
    xattrs: tuple[tuple[str, bytes], ...]
    links: tuple[str, ...]          # the paths of the same file
    sha256: str


KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink", stat.S_IFIFO: "fifo", stat.S_IFCHR: "character device",
         stat.S_IFBLK: "block device", stat.S_IFSOCK: "socket"}


def xattrs(path: bytes) -> tuple[tuple[str, bytes], ...]:
    names = [name for name in os.listxattr(path, follow_symlinks=False) if not name.startswith(HIDDEN_XATTRS)]
    return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names))


def digest(path: bytes) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def paths(root: bytes) -> Iterator[bytes]:
    yield root
    for base, directories, files in os.walk(root):
        yield from (os.path.join(base, name) for name in directories + files)


def walk(root: Path) -> dict[str, Entry]:
    top = os.fsencode(root)
    found = {path: os.lstat(path) for path in paths(top)}
    groups: dict[int, list[str]] = defaultdict(list)
    for path, info in found.items():
        if not stat.S_ISDIR(info.st_mode) and info.st_nlink > 1:
            groups[info.st_ino].append(os.fsdecode(os.path.relpath(path, top)))
    entries = {}
    for path, info in found.items():
        regular, kind = stat.S_ISREG(info.st_mode), stat.S_IFMT(info.st_mode)
        entries[os.fsdecode(os.path.relpath(path, top))] = Entry(
            KINDS[kind], stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, info.st_size if regular else 0, info.st_mtime_ns,
            os.fsdecode(os.readlink(path)) if kind == stat.S_IFLNK else "", info.st_rdev, xattrs(path),
            tuple(sorted(groups.get(info.st_ino, []))),
            digest(path) if regular else "")
    return entries


@dataclass(frozen=True)
class Difference:
    path: str
    kind: str
    field: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        return f"{self.path}: {self.field} is {self.ours!r}, not {self.theirs!r}"


def differences(ours: dict[str, Entry], theirs: dict[str, Entry]) -> list[Difference]:
    found = []
    for path in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(path), theirs.get(path)
        if one is None or other is None:
            found.append(Difference(path, "", "presence", one and one.kind, other and other.kind))
            continue
        found += [Difference(path, one.kind, name, getattr(one, name), getattr(other, name)) for name in Entry.__dataclass_fields__
                  if getattr(one, name) != getattr(other, name)]
    return found


def fingerprint(root: Path) -> str:
    """One hash of all of it."""
    return hashlib.sha256(repr(sorted(walk(root).items())).encode("utf-8", "surrogateescape")).hexdigest()


@contextlib.contextmanager
def merged(layers: list[Path], place: Path) -> Iterator[Path]:
    """The layers, lowest first, as a container sees them: overlayfs, with marks in user.* xattrs.

    Each layer is passed separately, because sixty of them exceed the one page that mount(2) takes.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    place.mkdir(exist_ok=True)

    def check(result: int, what: str) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
        return result

    if len(layers) == 1:
        subprocess.run(["mount", "--bind", "-o", "ro", str(layers[0]), str(place)], check=True)
    else:
        fsopen, fsconfig, fsmount, move_mount = 430, 431, 432, 429
        context = check(libc.syscall(fsopen, b"overlay", 0), "fsopen")
        for key, value in [("userxattr", None), *(("lowerdir+", str(layer)) for layer in reversed(layers))]:
            command = 0 if value is None else 1
            check(libc.syscall(fsconfig, context, command, key.encode(), value and value.encode(), 0), f"overlay option {key}")
        check(libc.syscall(fsconfig, context, 6, None, None, 0), "overlay")
        mount = check(libc.syscall(fsmount, context, 0, MS_RDONLY), "fsmount")
        check(libc.syscall(move_mount, mount, b"", -100, str(place).encode(), 4), "move_mount")
        os.close(mount)
        os.close(context)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
