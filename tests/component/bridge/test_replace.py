# SPDX-License-Identifier: Apache-2.0
"""`nodens-bridge --replace`: what is refused, and what remains when it fails. Replacements under load: test_kills.py."""
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodenstest import bridged
from nodenstest.bridged import Volume, wait_until
from nodenstest.runtimes import program


def replace(pid: int, target: Path | str = "/") -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("src/bridge/nodens-bridge"), "--replace", str(pid), str(target)], check=False, timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_a_process_that_serves_no_volume_is_refused_and_goes_on(stranger: subprocess.Popen[bytes]) -> None:
    done = replace(stranger.pid)
    assert done.returncode == 1 and done.stderr == f"nodens-bridge: process {stranger.pid} serves no volume\n"
    wait_until(lambda: state_of(stranger.pid) == "S", "a process that sleeps")


def test_a_process_that_does_not_exist_is_refused(stranger: subprocess.Popen[bytes]) -> None:
    stranger.kill()
    stranger.wait()
    assert "No such process" in replace(stranger.pid).stderr


@pytest.mark.parametrize("size", [0, 4096, 1 << 40])
def test_memory_that_only_has_the_name_is_refused(size: int) -> None:
    """As of another version of nodens-bridge."""
    memory = os.memfd_create("nodens-bridge", 0)
    os.truncate(memory, size)
    with subprocess.Popen(["sleep", "600"], pass_fds=[memory]) as process:
        try:
            assert "another version" in replace(process.pid).stderr
            wait_until(lambda: state_of(process.pid) == "S", "a process that sleeps")
        finally:
            process.kill()
            os.close(memory)


def test_a_state_of_another_version_is_refused_and_the_volume_goes_on(disk: Volume) -> None:
    """The number is the first word of the state."""
    before = disk.family()
    server = disk.server()
    found = next(entry for entry in Path(f"/proc/{server}/fd").iterdir() if "memfd:nodens-bridge" in str(entry.readlink()))
    with open(found, "r+b") as state:
        version = state.read(4)
        state.seek(0)
        state.write((int.from_bytes(version, "little") + 1).to_bytes(4, "little"))
        state.flush()
        done = replace(server, disk.target)
        state.seek(0)
        state.write(version)
    assert done.returncode == 1 and "the state has version" in done.stderr
    assert sorted(disk.family()) == sorted(before)
    disk.run(lambda: os.mkdir("d"))


def test_open_files_locks_and_directories_stay(disk: Volume) -> None:
    reader, writer = os.pipe()

    def work() -> tuple[bytes, str]:
        os.mkdir("d")
        os.chdir("d")
        fd = os.open("f", os.O_RDWR | os.O_CREAT)
        os.write(fd, b"before ")
        os.unlink("f")
        os.lockf(fd, os.F_LOCK, 0)
        os.read(reader, 1)
        os.write(fd, b"after")
        os.lseek(fd, 0, 0)
        return os.read(fd, 100), os.getcwd()
    running = disk.start(work)
    wait_until(lambda: (disk.source / "d").exists() and not os.listdir(disk.source / "d"), "the removal of the file")
    for _ in range(3):
        bridged.replace(disk)
    os.write(writer, b"x")
    text, place = running.result()
    assert text == b"before after" and place.endswith("/d")


def test_a_replacement_that_is_killed_leaves_the_volume_or_has_replaced_it(disk: Volume) -> None:
    """Then nodens-cri continues the processes, unless there is another one already, as here."""
    for number in range(80):
        before = disk.family()
        with subprocess.Popen([program("src/bridge/nodens-bridge"), "--replace", str(disk.server()), str(disk.target)],
                              stdin=subprocess.DEVNULL) as process:
            time.sleep(0.0003 * (number % 40))
            process.kill()
        if set(disk.family()) <= set(before):
            for pid in before:
                os.kill(pid, signal.SIGCONT)
        disk.each(lambda: os.mkdir("d"), lambda: os.rmdir("d"))
        wait_until(lambda: len(disk.family()) == 3, "three processes")


def test_a_volume_whose_server_does_not_stop_goes_on(disk: Volume) -> None:
    """A process that is traced does not stop by a signal, as one does not that waits for storage."""
    libc = ctypes.CDLL(None, use_errno=True)
    server = disk.server()
    assert libc.ptrace(0x4206, server, None, None) == 0, "PTRACE_SEIZE"
    try:
        begun = time.monotonic()
        done = replace(server, disk.target)
        assert done.returncode == 1
        assert time.monotonic() - begun < 30
    finally:
        libc.ptrace(17, server, None, None)
    disk.run(lambda: os.mkdir("d"))
