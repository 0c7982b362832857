# SPDX-License-Identifier: Apache-2.0
"""Random operations on one file, each compared with a copy in memory: writes, reads, sizes, holes, mappings, syncs, reopening."""
import ctypes
import mmap
import os
import random
from collections.abc import Callable

LARGEST = 1 << 18
WRITTEN_MOST = 1 << 14
PUNCH = 0x02 | 0x01           # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE


class Exerciser:
    """A file and what must be in it."""

    def __init__(self, path: str, seed: int) -> None:
        self.path = path
        self.random = random.Random(seed)
        self.wanted = bytearray()
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.done: list[str] = []

    def place(self) -> tuple[int, int]:
        start = self.random.randrange(LARGEST - WRITTEN_MOST)
        return start, self.random.randrange(1, WRITTEN_MOST)

    def put(self, start: int, data: bytes) -> None:
        self.wanted.extend(bytes(max(0, start + len(data) - len(self.wanted))))
        self.wanted[start:start + len(data)] = data

    def write(self) -> str:
        start, length = self.place()
        data = self.random.randbytes(length)
        assert os.pwrite(self.fd, data, start) == length
        self.put(start, data)
        return f"write {length} at {start}"

    def append(self) -> str:
        data = self.random.randbytes(100)
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        assert os.write(fd, data) == len(data)
        os.close(fd)
        self.wanted += data
        if len(self.wanted) > LARGEST:
            self.truncate()
        return "append 100"

    def read(self) -> str:
        start, length = self.place()
        found = os.pread(self.fd, length, start)
        assert found == self.wanted[start:start + length], self.report(f"read {length} at {start}", found, start)
        return f"read {length} at {start}"

    def truncate(self) -> str:
        size = self.random.randrange(LARGEST)
        os.ftruncate(self.fd, size)
        del self.wanted[size:]
        self.wanted.extend(bytes(size - len(self.wanted)))
        return f"truncate to {size}"

    def punch(self) -> str:
        start, length = self.place()
        try:
            self.fallocate(PUNCH, start, length)
        except OSError:
            return "no holes"
        end = min(start + length, len(self.wanted))
        if start < end:
            self.wanted[start:end] = bytes(end - start)
        return f"punch {length} at {start}"

    def fallocate(self, mode: int, start: int, length: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.fallocate(self.fd, mode, ctypes.c_long(start), ctypes.c_long(length)) < 0:
            raise OSError(ctypes.get_errno(), "fallocate")

    def map_write(self) -> str:
        if not self.wanted:
            return "nothing to map"
        start = self.random.randrange(len(self.wanted))
        length = min(self.random.randrange(1, WRITTEN_MOST), len(self.wanted) - start)
        data = self.random.randbytes(length)
        with mmap.mmap(self.fd, len(self.wanted)) as mapped:
            mapped[start:start + length] = data
            mapped.flush()
        self.put(start, data)
        return f"map and write {length} at {start}"

    def map_read(self) -> str:
        if self.wanted:
            with mmap.mmap(self.fd, len(self.wanted), prot=mmap.PROT_READ) as mapped:
                found = mapped[:]
            assert found == self.wanted, self.report("map and read", found, 0)
        return "map and read"

    def sync(self) -> str:
        os.fsync(self.fd)
        return "sync"

    def reopen(self) -> str:
        os.close(self.fd)
        self.fd = os.open(self.path, os.O_RDWR)
        return "reopen"

    def size(self) -> str:
        assert os.fstat(self.fd).st_size == os.stat(self.path).st_size == len(self.wanted), self.report("size", b"", 0)
        return "size"

    def report(self, what: str, found: bytes, start: int) -> str:
        wanted = bytes(self.wanted[start:start + len(found)])
        first = next((at for at, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other), len(found))
        return (f"{what}: the first difference is at {start + first} of {len(self.wanted)}; size {os.fstat(self.fd).st_size}; before it: "
                + ", ".join(self.done[-12:]))

    def step(self) -> None:
        actions: tuple[Callable[[], str], ...] = (
            self.write, self.write, self.write, self.append, self.read, self.read, self.read, self.truncate, self.punch, self.map_write,
            self.map_read, self.sync, self.reopen, self.size)
        self.done.append(self.random.choice(actions)())
        del self.done[:-20]


def run(path: str, seed: int, steps: int, after_step: Callable[[int], bool] = lambda number: True) -> int:
    """Runs until the steps are done or `after_step` says False; returns how many were done."""
    one = Exerciser(path, seed)
    for number in range(steps):
        one.step()
        if not after_step(number):
            break
    one.reopen()
    one.map_read()
    return number + 1
