# SPDX-License-Identifier: Apache-2.0
"""Storage without owners behind nodens-bridge: all files belong to one user of the pod (`--force-owner`)."""
import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from conftest import STORAGES, volume_of
from nodenstest import bridged, fsx
from nodenstest.bridged import Volume

USER, GROUP = 1000, 1001


@pytest.fixture
def volume(unowned: str, namespace: str) -> Iterator[Volume]:
    with ExitStack() as stack:
        yield volume_of(unowned, namespace, stack, "--force-owner", f"{USER}:{GROUP}")


@pytest.fixture
def server_side(unowned: str, volume: Volume) -> os.PathLike[str]:
    """The directory at the server."""
    return STORAGES.places[unowned].server / volume.source.name


def write(path: str, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def read(path: str | os.PathLike[str]) -> str:
    with open(path) as file:
        return file.read()


def test_a_user_writes_reads_renames_and_removes(volume: Volume, server_side: os.PathLike[str]) -> None:
    def work() -> None:
        os.mkdir("d")
        write("d/file", "text\n")
        write("d/file", "more\n")
        assert read("d/file") == "text\nmore\n" and os.stat("d/file").st_size == 10
        os.rename("d/file", "d/other")
        write("gone", "x")
        os.unlink("gone")
        assert os.listdir("d") == ["other"]
        os.mkdir("empty")
        os.rmdir("empty")
        os.truncate("d/other", 4)
        assert read("d/other") == "text"
    volume.run(work, USER, GROUP)
    assert os.listdir(server_side) == ["d"] and read(f"{server_side}/d/other") == "text"


def test_all_files_belong_to_the_user(volume: Volume, server_side: os.PathLike[str]) -> None:
    with open(f"{server_side}/given", "w") as file:
        file.write("text")
    found = volume.run(lambda: os.stat("given"), USER, GROUP)
    assert (found.st_uid, found.st_gid, found.st_size) == (USER, GROUP, 4)

    def change() -> tuple[int, int]:
        write("own", "x")
        os.chown("own", 0, 0)
        return os.stat("own").st_uid, os.stat("own").st_gid
    assert volume.run(change) == (USER, GROUP), "a change of the owner is ignored"
    with pytest.raises(PermissionError):
        volume.run(lambda: os.mkdir("refused"), 1002, 1002)


def test_a_large_file_and_many_small_ones(volume: Volume, server_side: os.PathLike[str]) -> None:
    data = os.urandom(1 << 20) * 8

    def work() -> int:
        with open("large", "wb") as file:
            file.write(data)
        for number in range(50):
            write(str(number), str(number))
        assert sorted(map(int, (name for name in os.listdir(".") if name != "large"))) == list(range(50))
        with open("large", "rb") as file:
            return int(file.read() == data)
    assert volume.run(work, USER, GROUP) == 1
    assert os.stat(f"{server_side}/large").st_size == len(data) and read(f"{server_side}/7") == "7"


def test_the_server_is_killed_while_files_are_written(volume: Volume) -> None:
    def work() -> int:
        for number in range(40):
            write("log", f"{number}\n")
            os.mkdir("held")
            os.rmdir("held")
        return len(read("log").split())
    running = volume.start(work, USER, GROUP)
    while running.is_alive():
        bridged.kill(volume.server())
        bridged.wait_until(lambda: len(volume.family()) == 3, "another server")
    assert running.result() == 40


def test_a_file_is_as_its_copy_in_memory(volume: Volume) -> None:
    assert volume.run(lambda: fsx.run("file", 1, 200), USER, GROUP) == 200
