# SPDX-License-Identifier: Apache-2.0
"""The command line `nodens` beside a real nodens-cri, also on a terminal."""
import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass

from nodenstest import runtimes
from nodenstest.pods import Pods


@dataclass
class Node:
    """A daemon, its pods, and the command line that talks to it."""

    runtime: runtimes.NodensCri
    pods: Pods

    def command(self, *arguments: str) -> list[str]:
        return [str(runtimes.program("src/nodens")), arguments[0], "--socket", str(self.runtime.socket), *arguments[1:]]

    def run(self, *arguments: str, input: bytes | None = None, timeout: float = 180) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.command(*arguments), input=input, capture_output=True, timeout=timeout)

    def said(self, *arguments: str) -> str:
        """The output of a command, which must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done
        return done.stdout.decode()


class Terminal:
    """A command with a terminal of its own."""

    def __init__(self, command: list[str], rows: int = 24, columns: int = 80) -> None:
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        # Not by a function before exec: grpcio's threads do not survive a fork.
        self.process = subprocess.Popen(["setsid", "--ctty", *command], stdin=slave, stdout=slave, stderr=slave)
        self.slave, self.output = slave, b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, text: bytes) -> None:
        os.write(self.master, text)

    def read(self, seconds: float = 0.1) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            self.output += os.read(self.master, 65536)

    def count(self, words: bytes) -> int:
        """How often these bytes have been shown so far."""
        self.read()
        return self.output.count(words)

    def expect(self, words: bytes, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while words not in self.output:
            assert time.monotonic() < deadline, f"{words!r} did not come: {self.output!r}"
            self.read()

    def ended(self, seconds: float = 60) -> int:
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end: {self.output!r}"
            self.read()
        self.read()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@contextlib.contextmanager
def terminal(command: list[str], **size: int) -> Iterator[Terminal]:
    made = Terminal(command, **size)
    try:
        yield made
    finally:
        made.close()
