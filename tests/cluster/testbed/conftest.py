# SPDX-License-Identifier: Apache-2.0
"""Tests of guests and clusters. They run on the host itself, as root: `tools/dev test testbed`."""
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import leftovers
import pytest
from nodensdev.project import TOP

GOING = 60.0  # seconds that the kernel may take to end a namespace full of processes


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: boots Debian's own kernel under QEMU, which takes a minute each time")


@dataclass
class Dev:
    """Runs tools/dev, marked."""

    mark: str
    namespaces: leftovers.Namespaces = field(default_factory=leftovers.Namespaces)

    def environment(self) -> dict[str, str]:
        return os.environ | {"NODENS_MARK": self.mark}

    def run(self, *arguments: str, timeout: float = 1200, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(TOP / "tools/dev"), *arguments], input=stdin,
                              stdin=None if stdin is not None else subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=timeout, env=self.environment())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command in a session of its own, as a terminal would, and lets it go on."""
        return subprocess.Popen([str(TOP / "tools/dev"), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True, env=self.environment())

    def wait_for_process(self, word: str, seconds: float = 300) -> None:
        """Waits until a process with this text in its command line runs."""
        deadline = time.monotonic() + seconds
        while not any(word in command for command in self.processes().values()):
            assert time.monotonic() < deadline, f"no '{word}' was started within {seconds} s"
            time.sleep(0.1)
        self.note_namespaces()

    def note_namespaces(self) -> None:
        """Records the namespaces of all running processes: they must be empty in the end."""
        self.namespaces.note(list(self.processes()))

    def processes(self) -> dict[int, str]:
        return leftovers.processes(self.mark)


@pytest.fixture(scope="session", autouse=True)
def warm_caches() -> None:
    """Builds everything that a cluster needs, so that no test waits for a compiler: on a new host that takes half an hour."""
    one = Dev(uuid.uuid4().hex)
    name = f"warm-{os.getpid()}"
    up = one.run("cluster", "up", "--name", name, "--timeout", "600", timeout=5400)
    assert up.returncode == 0, up.stderr
    assert one.run("cluster", "down", "--name", name).returncode == 0


@pytest.fixture
def dev() -> Iterator[Dev]:
    """tools/dev, for a test that must leave nothing on the host."""
    before = leftovers.Machine.now()
    one = Dev(uuid.uuid4().hex)
    yield one
    left = leftovers.wait_until_gone(one.mark, GOING)
    assert not left, f"processes are left: {left}"
    still_there = one.namespaces.wait_until_left(GOING)
    one.namespaces.close()
    assert not still_there, f"namespaces are left: {still_there}"
    assert not (grown := leftovers.Machine.now().more_than(before)), f"left on the host: {grown}"


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Writes a script for a guest and returns its path."""
    def write(text: str) -> str:
        path = tmp_path / f"{uuid.uuid4().hex[:6]}.sh"
        path.write_text("#!/bin/sh\n" + text)
        return str(path)
    return write
