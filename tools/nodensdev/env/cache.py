# SPDX-License-Identifier: Apache-2.0
"""The cache outside the tree, for results that are expensive to make.

Theory of operation
  An entry lives at KIND/NAME/KEY, where KEY is a hash of its inputs; a change of the inputs is a
  change of the path, so nothing is ever updated in place. An entry is made under `tmp/` and renamed
  to its path when it is complete, so that no partial entry is visible. Makers hold an exclusive
  lock on the entry, users a shared one for the rest of their process: two commands at once do not
  make the same entry twice, and pruning removes only unused ones. `scratch()` directories belong to
  one command; those of commands that were killed are removed by the next one.
"""
import argparse
import contextlib
import fcntl
import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..command import Command, Failure
from . import machine

KEY_LENGTH = 16


def top() -> Path:
    """The cache's directory: $NODENS_CACHE, or /var/cache/nodens."""
    path = Path(os.environ.get("NODENS_CACHE") or "/var/cache/nodens")
    if not path.is_absolute():
        raise Failure(f"NODENS_CACHE must be an absolute path, not '{path}'")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot make the cache directory {path}: {error.strerror}; set NODENS_CACHE to one of yours") from error
    return path


def key_of(*inputs: str | bytes) -> str:
    """A short name for exactly these inputs."""
    digest = hashlib.sha256()
    for item in inputs:
        data = item.encode() if isinstance(item, str) else item
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:KEY_LENGTH]


def ensure(kind: str, name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The entry's directory; `make(directory)` fills it when it is not there yet."""
    entry = top() / kind / name / key
    entry.parent.mkdir(parents=True, exist_ok=True)
    lock = open_lock(entry)
    if not entry.is_dir():
        lock_alone(lock, f"{kind}/{name}")
        if not entry.is_dir():
            make_and_rename(entry, make)
    fcntl.flock(lock, fcntl.LOCK_SH)
    os.utime(lock)
    if not entry.is_dir():  # pruned between our two locks
        return ensure(kind, name, key, make)
    return entry


def open_lock(entry: Path) -> int:
    """The descriptor stays open until the process ends: that is what keeps the entry from being pruned."""
    return os.open(lock_path(entry), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def lock_alone(lock: int, title: str) -> None:
    """Takes the maker's lock, and says so when another command has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        machine.say(f"waiting for another command that makes {title}")
        fcntl.flock(lock, fcntl.LOCK_EX)


def lock_path(entry: Path) -> Path:
    return entry.with_name(entry.name + ".lock")


def make_and_rename(entry: Path, make: Callable[[Path], None]) -> None:
    holder = Path(tempfile.mkdtemp(prefix=f"{entry.parent.name}-", dir=directory("tmp")))
    held = lock_directory(holder)
    try:
        fresh = holder / "entry"
        fresh.mkdir(mode=0o755)
        make(fresh)
        fresh.rename(entry)
    finally:
        remove_tree(holder)
        os.close(held)


def directory(name: str) -> Path:
    path = top() / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def lock_directory(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def remove_tree(path: Path) -> None:
    """Removes a tree, Go's read-only directories and trees of any depth included."""
    remove = ["rm", "-rf", "--", str(path)]
    if subprocess.run(remove, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(path)], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(remove, check=True)


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A directory on the cache's filesystem for one command, gone when it ends."""
    remove_abandoned("scratch")
    path = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=directory("scratch")))
    held = lock_directory(path)
    try:
        yield path
    finally:
        remove_tree(path)
        os.close(held)


def remove_abandoned(name: str) -> None:
    """Removes the directories in NAME whose owner did not live to do it."""
    for path in directory(name).iterdir():
        # Another command may remove it, too, or be just done with it.
        with contextlib.suppress(BlockingIOError, FileNotFoundError), open_directory(path) as descriptor:
            if time.time() - os.fstat(descriptor).st_mtime < 5:  # its owner may be about to lock it
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(path)


@contextlib.contextmanager
def open_directory(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Entry:
    """An entry on disk, as `tools/dev cache` sees it."""

    path: Path
    used: float
    stale: bool

    @property
    def title(self) -> str:
        return "/".join(self.path.parts[-3:])


def entries() -> list[Entry]:
    """All entries. One is stale when another key of the same name was used after it."""
    found = []
    for name in sorted(top().glob("*/*/")):
        keys = {path: lock_path(path) for path in name.iterdir() if path.is_dir()}
        used = {path: lock.stat().st_mtime for path, lock in keys.items() if lock.exists()}
        newest = max(used.values(), default=0.0)
        found += [Entry(path, when, when < newest) for path, when in used.items()]
    return found


def prune(everything: bool) -> None:
    for name in ("tmp", "scratch"):
        remove_abandoned(name)
    for entry in entries():
        if not (entry.stale or everything):
            continue
        lock = open_lock(entry.path)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"in use, kept: {entry.title}")
            continue
        remove_tree(entry.path)
        lock_path(entry.path).unlink()
        os.close(lock)
        print(f"removed {entry.title}")


def size_of(path: Path) -> int:
    """Bytes on disk, each inode counted once."""
    seen: set[int] = set()
    total = 0
    for base, directories, files in os.walk(path):
        for name in directories + files:
            with contextlib.suppress(FileNotFoundError):  # another command may change it
                info = os.lstat(os.path.join(base, name))
                total += info.st_blocks * 512 if info.st_ino not in seen else 0
                seen.add(info.st_ino)
    return total


def show() -> None:
    print(f"cache: {top()}")
    for entry in entries():
        age = (time.time() - entry.used) / 3600
        mark = "  (stale)" if entry.stale else ""
        print(f"  {size_of(entry.path) / 2**20:7.0f} MiB  used {age:6.1f} h ago  {entry.title}{mark}")


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prune", action="store_true", help="remove entries that a newer one of the same name has replaced")
    parser.add_argument("--prune-all", action="store_true", help="remove every entry that is not in use")


def run(args: argparse.Namespace) -> int:
    if args.prune or args.prune_all:
        prune(everything=args.prune_all)
    else:
        show()
    return 0


COMMANDS = [Command("cache", "list what is cached outside the tree, or prune it", run, options)]
