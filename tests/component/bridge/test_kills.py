# SPDX-License-Identifier: Apache-2.0
"""The processes of a bridged volume are killed or replaced while a pod uses it: programs notice a pause, and no wrong result."""
import contextlib
import errno
import fcntl
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import volume_of
from nodenstest import bridged, fsx
from nodenstest.bridged import Volume

ROUNDS = 25          # kills of one test; nightly has more


def restarted(volume: Volume, *dead: int) -> bool:
    """The dead are gone, and there are three processes, of which one has threads."""
    with contextlib.suppress(OSError, ValueError):
        family = volume.family()
        return len(family) == 3 and not set(dead) & set(family) and len(os.listdir(f"/proc/{volume.server()}/task")) > 1
    return False


# ---- what a pod does; each function returns when the file `stop` exists ----

class Rounds:
    """How many rounds each load has begun, in memory that the processes share."""

    def __init__(self) -> None:
        self.counts = mmap.mmap(-1, 64)
        self.own = 0

    def begin(self) -> None:
        self.counts[self.own] = min(self.counts[self.own] + 1, 255)


ROUNDS_BEGUN = Rounds()


def going(top: str = ".") -> bool:
    ROUNDS_BEGUN.begin()
    return not os.path.exists(f"{top}/stop")


def set_attribute(path: str) -> None:
    """NFS 3 has none."""
    try:
        os.setxattr(path, "user.x", b"y", os.XATTR_CREATE)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise


def names(me: str) -> int:
    rounds = 0
    while going():
        top = f"{me}-{rounds}"
        os.mkdir(top)
        os.close(os.open(f"{top}/a", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.rename(f"{top}/a", f"{top}/b")
        os.link(f"{top}/b", f"{top}/c")
        os.symlink("b", f"{top}/s")
        os.mkfifo(f"{top}/p")
        assert sorted(os.listdir(top)) == ["b", "c", "p", "s"] and os.stat(f"{top}/s").st_nlink == 2
        os.chmod(f"{top}/b", 0o600)
        set_attribute(f"{top}/b")
        for name in "bcsp":
            os.unlink(f"{top}/{name}")
        os.rmdir(top)
        rounds += 1
    return rounds


def log(me: str) -> int:
    rounds = 0
    fd = os.open(me, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    while going():
        os.write(fd, b"%08d\n" % rounds)
        rounds += 1
        if rounds % 50 == 0:
            os.fsync(fd)
    os.close(fd)
    with open(me, "rb") as file:
        assert file.read() == b"".join(b"%08d\n" % number for number in range(rounds)), "each line is there once"
    return rounds


def count(me: str) -> int:
    rounds = 0
    fd = os.open("counter", os.O_RDWR | os.O_CREAT)
    while going():
        fcntl.lockf(fd, fcntl.LOCK_EX)
        os.pwrite(fd, b"%d" % (int(os.pread(fd, 20, 0) or b"0") + 1), 0)
        fcntl.lockf(fd, fcntl.LOCK_UN)
        rounds += 1
    return rounds


def unnamed(me: str) -> int:
    rounds = 0
    fd = os.open(me, os.O_RDWR | os.O_CREAT)
    os.write(fd, bytes(4096))
    os.unlink(me)
    while going():
        os.pwrite(fd, b"%08d" % rounds, 0)
        assert os.pread(fd, 8, 0) == b"%08d" % rounds and os.fstat(fd).st_size == 4096
        rounds += 1
    return rounds


def listing(me: str) -> int:
    rounds = 0
    os.mkdir(me)
    for number in range(300):
        os.close(os.open(f"{me}/{number}", os.O_CREAT))
    while going():
        with os.scandir(me) as entries:
            assert len([entry.stat() for entry in entries]) == 300
        rounds += 1
    return rounds


def working_directory(me: str) -> int:
    rounds = 0
    top = os.getcwd()
    os.makedirs(f"{me}/deep")
    os.chdir(f"{me}/deep")
    with open("file", "w") as file:
        file.write("here")
    while going(top):
        os.stat(".")
        with open("file") as file:
            assert file.read() == "here"
        rounds += 1
    return rounds


def memory(me: str) -> int:
    rounds = 0
    fd = os.open(me, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 1 << 20)
    with mmap.mmap(fd, 1 << 20) as mapped:
        while going():
            place = rounds % 200 * 4096
            mapped[place] = rounds & 255
            assert os.pread(fd, 1, place)[0] == rounds & 255
            rounds += 1
            if rounds % 100 == 0:
                mapped.flush()
    return rounds


def waiting(me: str) -> int:
    """Two who wait for each other's flock."""
    rounds = 0
    with open("flock", "a") as file:
        while going():
            fcntl.flock(file, fcntl.LOCK_EX)
            os.mkdir("held")
            os.rmdir("held")
            fcntl.flock(file, fcntl.LOCK_UN)
            rounds += 1
    return rounds


LOADS: tuple[Callable[[str], int], ...] = (names, names, log, count, count, unnamed, listing, working_directory, memory, waiting, waiting)


def kill_server(volume: Volume) -> list[int]:
    pid = volume.server()
    assert bridged.kill(pid)
    return [pid]


def replace(volume: Volume) -> list[int]:
    """As after an upgrade of nodens-bridge."""
    before = volume.family()
    bridged.replace(volume)
    return before


def under_load(volume: Volume, rounds: int, disturb: Callable[[Volume], list[int]]) -> None:
    """Kills, each after the processes are complete again and some of the load was done; then all results are right.

    `disturb` returns the processes that end.
    """
    def begin(load: Callable[[str], int], number: int) -> int:
        ROUNDS_BEGUN.own = number
        return load(f"{load.__name__}{number}")
    ROUNDS_BEGUN.counts[:] = bytes(64)
    running = [(load, volume.start(lambda load=load, number=number: begin(load, number))) for number, load in enumerate(LOADS)]
    try:
        for number in range(rounds):
            time.sleep(0.003 * (number % 7))
            dead = disturb(volume)
            bridged.wait_until(lambda dead=dead: restarted(volume, *dead), "three processes after a kill")
        bridged.wait_until(lambda: min(ROUNDS_BEGUN.counts[:len(LOADS)]) > 1 or not all(one.is_alive() for _, one in running),
                           "a round of each load")
    finally:
        (volume.source / "stop").touch()
    results = [(load, one.result()) for load, one in running]
    assert all(done > 0 for _, done in results), results
    assert int((volume.source / "counter").read_text()) == sum(done for load, done in results if load is count)


def test_the_server_is_killed_under_load(namespace: str, served: str) -> None:
    with contextlib.ExitStack() as stack:
        under_load(volume_of(served, namespace, stack, memory=True), ROUNDS, kill_server)


def test_each_process_is_killed_in_turn(namespace: str) -> None:
    turn = iter(range(ROUNDS))

    def kill_next(volume: Volume) -> list[int]:
        pid = sorted(volume.family())[next(turn) % 3]
        assert bridged.kill(pid)
        return [pid]
    with contextlib.ExitStack() as stack:
        under_load(volume_of("disk", namespace, stack, memory=True), ROUNDS, kill_next)


@pytest.mark.skipif(not bridged.can_compare_processes(), reason="User-mode Linux has no kcmp()")
def test_all_processes_are_replaced_under_load(namespace: str, served: str) -> None:
    with contextlib.ExitStack() as stack:
        under_load(volume_of(served, namespace, stack, memory=True), ROUNDS, replace)


@pytest.mark.nightly
def test_500_kills_of_the_server(namespace: str, served: str) -> None:
    with contextlib.ExitStack() as stack:
        under_load(volume_of(served, namespace, stack, memory=True), 500, kill_server)


def exercise(volume: Volume, steps: int, kills: int) -> None:
    """A file has what a copy in memory has, while the server is killed between and during operations."""
    done = mmap.mmap(-1, 8)

    def count_steps(number: int) -> bool:
        done[:8] = (number + 1).to_bytes(8, "little")
        return True
    running = volume.start(lambda: fsx.run("file", 1, steps, count_steps))
    for number in range(kills):
        bridged.wait_until(lambda number=number: int.from_bytes(done[:8], "little") >= number * steps // kills
                           or not running.is_alive(), "operations on the file")
        if not running.is_alive():
            break
        pid = volume.server()
        assert bridged.kill(pid)
        bridged.wait_until(lambda pid=pid: restarted(volume, pid), "another server")
    assert running.result() == steps


def test_a_file_is_as_its_copy_in_memory_while_servers_are_killed(namespace: str, served: str) -> None:
    with contextlib.ExitStack() as stack:
        exercise(volume_of(served, namespace, stack, memory=True), 2000, 25)


@pytest.mark.nightly
def test_a_file_is_as_its_copy_in_memory_for_long(namespace: str, served: str) -> None:
    with contextlib.ExitStack() as stack:
        exercise(volume_of(served, namespace, stack, memory=True), 200_000, 500)


def test_a_keeper_and_the_server_die_at_once(disk: Volume) -> None:
    for _ in range(5):
        server = disk.server()
        keeper = int(Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()[1])
        bridged.kill(keeper)
        bridged.kill(server)
        bridged.wait_until(lambda dead=(keeper, server): restarted(disk, *dead), "three processes")
        disk.each(lambda: os.mkdir("d"), lambda: os.rmdir("d"))


def test_locks_survive_the_server(disk: Volume) -> None:
    reader, writer = os.pipe()

    def hold() -> None:
        with open("l", "w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            os.read(reader, 1)
    holder = disk.start(hold)

    def is_locked() -> bool:
        with open(disk.source / "l", "w") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                assert error.errno in (errno.EAGAIN, errno.EACCES)
                return True
        return False
    bridged.wait_until(lambda: (disk.source / "l").exists() and is_locked(), "the lock")
    server = disk.server()
    bridged.kill(server)
    bridged.wait_until(lambda: restarted(disk, server), "another server")
    assert is_locked()
    os.write(writer, b"x")
    holder.result()
    assert not is_locked()


def test_without_any_process_the_pod_gets_errors_and_no_hang(disk: Volume) -> None:
    disk.run(lambda: os.mkdir("d"))
    while disk.family():
        for pid in disk.family():
            bridged.kill(pid)
    with pytest.raises(OSError) as caught:
        disk.run(lambda: os.mkdir("e"))
    # the kernel may still be closing the connection
    assert caught.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
