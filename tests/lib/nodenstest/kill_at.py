# SPDX-License-Identifier: Apache-2.0
"""Kills a server of FUSE requests at a given system call, before the kernel does it or after.

    with kill_at.armed(pid, device, 3) as killer:
        os.mkdir("/mnt/d")
        killer.happened()       # False: fewer system calls were made for the requests

The calls are those of threads that work on a request, from the return of read() on the device to the next read(); each counts twice,
where it begins and where it has ended.
"""
import contextlib
import ctypes
import os
import signal
import struct
from collections.abc import Iterator
from dataclasses import dataclass

SEIZE, INTERRUPT, GET_CALL, CONTINUE_TO_CALL = 0x4206, 0x4207, 0x420E, 24
TRACE_CALLS, TRACE_CLONES = 1, 8
ENTRY, EXIT = 1, 2
READ = 0                                # the number of read() on x86-64
CALL_STOP = signal.SIGTRAP | 0x80
WALL = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request: int, thread: int, address: int, data: object) -> int:
    return int(libc.ptrace(request, thread, address, data))


@dataclass
class Call:
    """struct ptrace_syscall_info, as far as it is used here."""

    at: int
    first: int          # the number at an entry, the result at an exit
    second: int         # the first argument at an entry

    @staticmethod
    def of(thread: int) -> "Call":
        buffer = ctypes.create_string_buffer(128)
        ptrace(GET_CALL, thread, len(buffer), buffer)
        at, = struct.unpack_from("=B", buffer.raw, 0)
        first, second = struct.unpack_from("=qq", buffer.raw, 24)
        return Call(at, first, second)


class Tracer:
    """Runs in a process of its own."""

    def __init__(self, pid: int, device: int, number: int) -> None:
        self.pid, self.device, self.left = pid, device, number
        self.reading: set[int] = set()      # threads in read() on the device
        self.working: set[int] = set()      # threads with a request

    def attach(self) -> None:
        threads = [int(name) for name in os.listdir(f"/proc/{self.pid}/task")]
        for thread in threads:
            ptrace(SEIZE, thread, 0, TRACE_CALLS | TRACE_CLONES)
            ptrace(INTERRUPT, thread, 0, None)
        for thread in threads:
            os.waitpid(thread, WALL)
            ptrace(CONTINUE_TO_CALL, thread, 0, None)

    def must_kill(self, thread: int) -> bool:
        """Looks at a stop of a thread at a system call."""
        call = Call.of(thread)
        if call.at == ENTRY and call.first == READ and call.second == self.device:
            self.reading.add(thread)
        elif call.at == EXIT and thread in self.reading:
            self.reading.remove(thread)
            if call.first > 0:
                self.working.add(thread)
        if thread not in self.working:
            return False
        if thread in self.reading:
            self.working.remove(thread)
        self.left -= 1
        return self.left < 0

    def run(self, writer: int) -> None:
        """Kills the server, and says so before: the request waits for this process."""
        while True:
            thread, status = os.waitpid(-1, WALL)
            if not os.WIFSTOPPED(status):
                continue
            stop = os.WSTOPSIG(status)
            if stop == CALL_STOP and self.must_kill(thread):
                os.write(writer, b"k")
                os.kill(self.pid, signal.SIGKILL)
                return
            passed = stop if status >> 16 == 0 and stop not in (CALL_STOP, signal.SIGTRAP) else 0
            ptrace(CONTINUE_TO_CALL, thread, 0, passed)


@dataclass
class Killer:
    reader: int

    def happened(self) -> bool:
        """Whether the server was killed."""
        os.set_blocking(self.reader, False)
        try:
            return os.read(self.reader, 1) == b"k"
        except BlockingIOError:
            return False


@contextlib.contextmanager
def armed(pid: int, device: int, number: int) -> Iterator[Killer]:
    """`device`: the server's descriptor of the FUSE device."""
    reader, writer = os.pipe()
    tracer = os.fork()
    if tracer == 0:
        try:
            one = Tracer(pid, device, number)
            one.attach()
            os.write(writer, b"r")
            one.run(writer)
        finally:
            os._exit(0)
    os.close(writer)
    try:
        assert os.read(reader, 1) == b"r", "the server cannot be traced"
        yield Killer(reader)
    finally:
        os.kill(tracer, signal.SIGKILL)
        os.waitpid(tracer, 0)
        os.close(reader)
