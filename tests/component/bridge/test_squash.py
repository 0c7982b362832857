# SPDX-License-Identifier: Apache-2.0
"""Volumes on an NFS server that squashes root, which nodens-bridge asks with the IDs of the caller, or of the file's owner.

`tools/dev test bridge-storage` runs it, in a guest.
"""
import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import STORAGES
from nodenstest import bridged
from nodenstest.bridged import Volume

USER, MEMBER, STRANGER, TEAM = 1000, 1003, 1001, 5000


@contextlib.contextmanager
def volume_as(who: str, squashing: str, namespace: str) -> Iterator[Volume]:
    source = STORAGES.directory(squashing)
    served = STORAGES.places[squashing].server / source.name
    served.chmod(0o1777)
    with bridged.directory() as base, bridged.bridge(source, base / "target", namespace, "--as", who) as one:
        yield Volume(served, one.target, namespace)


@pytest.fixture(params=["caller", "owner"])
def volume(request: pytest.FixtureRequest, squashing: str, namespace: str) -> Iterator[Volume]:
    with volume_as(request.param, squashing, namespace) as one:
        yield one


@pytest.fixture
def of_caller(squashing: str, namespace: str) -> Iterator[Volume]:
    with volume_as("caller", squashing, namespace) as one:
        yield one


@pytest.fixture
def of_owner(squashing: str, namespace: str) -> Iterator[Volume]:
    with volume_as("owner", squashing, namespace) as one:
        yield one


def fails(function: Callable[[], object], *errors: int) -> None:
    with pytest.raises(OSError) as caught:
        function()
    assert caught.value.errno in errors, caught.value


def write(path: str, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def work_at_home() -> None:
    os.mkdir("home", 0o700)
    os.chdir("home")
    fd = os.open("f", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.write(fd, b"hello")
    assert os.pread(fd, 5, 0) == b"hello"
    os.close(fd)
    write("f", " world")
    assert read("f") == "hello world"
    os.rename("f", "g")
    os.symlink("g", "l")
    os.link("g", "k")
    assert sorted(os.listdir(".")) == ["g", "k", "l"]
    os.chmod("g", 0o640)
    os.utime("g", (1, 1))
    os.truncate("g", 3)
    assert read("l") == "hel"
    os.mkdir("d")
    os.rmdir("d")
    os.unlink("k")
    found = os.stat("g")
    assert (found.st_uid, found.st_gid) == (USER, USER)


def test_a_user_does_everything_at_home_and_others_nothing(volume: Volume) -> None:
    volume.run(work_at_home, USER, USER)
    assert (volume.source / "home/g").stat().st_uid == USER
    fails(lambda: volume.run(lambda: os.listdir("home"), STRANGER, STRANGER), errno.EACCES)
    fails(lambda: volume.run(lambda: os.mkdir("home/x"), STRANGER, STRANGER), errno.EACCES)


def test_a_user_works_in_a_public_directory_of_root(volume: Volume) -> None:
    def work() -> None:
        write("a", "1")
        os.mkdir("d")
        os.rename("a", "b")
        os.rename("b", "d/c")
        os.rename("d/c", "e")
        os.rmdir("d")
        write("gone", "1")
        os.unlink("gone")
    volume.run(work, USER, USER)
    bridged.wait_until(lambda: os.listdir(volume.source) == ["e"], "the end of .nfs... for a file that was closed late")
    fails(lambda: volume.run(lambda: os.unlink("e"), STRANGER, STRANGER), errno.EACCES, errno.EPERM)
    fails(lambda: volume.run(lambda: os.rename("e", "f"), STRANGER, STRANGER), errno.EACCES, errno.EPERM)
    assert os.listdir(volume.source) == ["e"]


def test_a_group_works_in_its_directory(volume: Volume) -> None:
    path = volume.source / "team"
    path.mkdir()
    os.chown(path, 1002, TEAM)
    path.chmod(0o770)

    def work() -> list[str]:
        write("team/x", "1")
        os.rename("team/x", "team/y")
        os.mkdir("team/z")
        os.unlink("team/y")
        return sorted(os.listdir("team"))
    assert volume.run(work, MEMBER, MEMBER, (TEAM,)) == ["z"]
    assert (path / "z").stat().st_uid == MEMBER
    fails(lambda: volume.run(work, STRANGER, STRANGER), errno.EACCES)


def private_file(volume: Volume) -> Path:
    path = volume.source / "home/private"
    path.parent.mkdir()
    path.write_text("text")
    for one in (path, path.parent):
        os.chown(one, USER, USER)
    path.chmod(0o640)
    path.parent.chmod(0o700)
    return path


def test_root_of_the_pod_is_squashed_as_a_caller(of_caller: Volume) -> None:
    path = private_file(of_caller)
    fails(lambda: of_caller.run(lambda: read("home/private")), errno.EACCES)
    path.parent.chmod(0o755)
    fails(lambda: of_caller.run(lambda: read("home/private")), errno.EACCES)
    fails(lambda: of_caller.run(lambda: os.chown("home/private", STRANGER, STRANGER)), errno.EPERM, errno.EACCES)
    assert path.stat().st_uid == USER


def test_root_of_the_pod_acts_as_the_owner_of_each_file(of_owner: Volume) -> None:
    path = private_file(of_owner)

    def work() -> str:
        text = read("home/private")
        write("home/private", " and more")
        os.chmod("home/private", 0o600)
        os.rename("home/private", "home/kept")
        return text
    assert of_owner.run(work) == "text"
    assert (path.parent / "kept").read_text() == "text and more" and os.listdir(path.parent) == ["kept"]
    of_owner.run(lambda: os.unlink("home/kept"))
    assert os.listdir(path.parent) == []
    fails(lambda: of_owner.run(lambda: os.chown("home", STRANGER, STRANGER)), errno.EPERM, errno.EACCES)
    fails(lambda: of_owner.run(lambda: os.listdir("home"), STRANGER, STRANGER), errno.EACCES)


def test_the_server_is_killed_and_nobody_gets_more_rights(volume: Volume) -> None:
    volume.run(work_at_home, USER, USER)
    for _ in range(5):
        with contextlib.suppress(ProcessLookupError):
            os.kill(volume.server(), 9)
        fails(lambda: volume.run(lambda: os.listdir("home"), STRANGER, STRANGER), errno.EACCES)
        assert volume.run(lambda: read("home/g"), USER, USER) == "hel"


def test_groups_that_a_process_gave_up_do_not_count(volume: Volume) -> None:
    path = volume.source / "team"
    path.mkdir()
    os.chown(path, 1002, TEAM)
    path.chmod(0o770)

    def drop() -> None:
        os.seteuid(0)           # root of the pod may change its groups; the server squashes it
        os.setgroups([TEAM])
        os.setresgid(MEMBER, MEMBER, MEMBER)
        os.setresuid(MEMBER, MEMBER, 0)
        os.mkdir("team/allowed")
        os.setresuid(0, 0, 0)
        os.setgroups([])
        os.setresgid(MEMBER, MEMBER, MEMBER)
        os.setresuid(MEMBER, MEMBER, MEMBER)
        os.mkdir("team/refused")
    fails(lambda: volume.run(drop), errno.EACCES)
    assert sorted(os.listdir(path)) == ["allowed"]
