# SPDX-License-Identifier: Apache-2.0
"""The jails of nodens-fetch and nodens-unpack, examined from outside while they run.

src/pull/jail/jail.h has the table of their rights.
"""
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nodenstest import fake_registry, puller
from nodenstest.images import Image, directory, entry, tar

LAYER = tar(directory("etc"), entry("etc/passwd", b"root:x:0:0\n"), entry("large", os.urandom(1 << 20)))
CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETPCAP, SYS_CHROOT, SYS_ADMIN, SETFCAP = 0, 1, 3, 4, 8, 18, 21, 31
FILES = sum(1 << one for one in (CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETFCAP))


def status(process: int) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":\t" in line)


def namespaces(process: int | str) -> dict[str, str]:
    return {kind: os.readlink(f"/proc/{process}/ns/{kind}") for kind in ("user", "mnt", "pid", "net", "ipc", "uts")}


def children(process: int) -> list[int]:
    return [int(found) for found in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@dataclass
class Cells:
    fetcher: int
    supervisor: int
    streams: list[int]      # the decompressor and the hash
    trees: list[int]        # the archive's reader
    staging: Path

    def all(self) -> list[int]:
        return [self.fetcher, self.supervisor, *self.streams, *self.trees]


@pytest.fixture
def cells(store: puller.Store, registry: fake_registry.Registry) -> Iterator[Cells]:
    """A pull that has half of its layer and waits for its registry, so that every process waits."""
    half, go_on = threading.Event(), threading.Event()

    def send(handler: Any) -> None:
        handler.wfile.write(LAYER[:len(LAYER) // 2])
        handler.wfile.flush()
        half.set()
        go_on.wait(puller.DEADLINE)
        handler.wfile.write(LAYER[len(LAYER) // 2:])

    def wait(_: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
        if not handler.path.endswith(fake_registry.digest(LAYER)):
            return None
        return fake_registry.Answer(200, headers={"Content-Length": str(len(LAYER))}, write=send)

    reference = registry.serve(Image().layer(LAYER, "none"))
    registry.hook = wait
    staging = store.staging()
    running = puller.Running(store, staging, puller.request(reference, store, noProgressSeconds=60))
    try:
        assert half.wait(puller.DEADLINE), "the registry got no request"
        yield find_cells(running, staging)
    finally:
        go_on.set()
        assert running.finish().code == 0


def find_cells(running: puller.Running, staging: Path) -> Cells:
    deadline = time.monotonic() + 30
    while True:
        supervisors = children(running.unpacker.process.pid)
        workers = children(supervisors[0]) if supervisors else []
        # A worker is confined when its own filter is loaded on top of the supervisor's.
        if len(workers) == 3 and all(status(worker).get("Seccomp_filters") == "2" for worker in workers):
            trees = [worker for worker in workers if int(status(worker)["CapEff"], 16) != 0]
            return Cells(running.process.pid, supervisors[0], [worker for worker in workers if worker not in trees], trees, staging)
        assert time.monotonic() < deadline, f"supervisor {supervisors}, workers {workers}"
        time.sleep(0.02)


def test_no_jail_can_gain_privileges(cells: Cells) -> None:
    for process in cells.all():
        seen = status(process)
        assert seen["NoNewPrivs"] == "1" and seen["Seccomp"] == "2" and int(seen["CapInh"], 16) == int(seen["CapAmb"], 16) == 0
        limits = Path(f"/proc/{process}/limits").read_text()
        assert "Max core file size        0                    0" in limits and "Max open files            1024" in limits


def test_the_fetchers_jail_has_no_capabilities_and_minimal_files(cells: Cells) -> None:
    seen = status(cells.fetcher)
    assert int(seen["CapEff"], 16) == int(seen["CapPrm"], 16) == int(seen["CapBnd"], 16) == 0
    assert namespaces(cells.fetcher)["mnt"] != namespaces("self")["mnt"] and namespaces(cells.fetcher)["net"] == namespaces("self")["net"]
    assert set(os.listdir(f"/proc/{cells.fetcher}/root")) <= {"ca", "etc", "blobs", "partial"}
    assert not Path(f"/proc/{cells.fetcher}/root/etc/shadow").exists() and not Path(f"/proc/{cells.fetcher}/root/proc").exists()


def test_the_unpackers_jail_has_no_network_and_no_rights_outside_its_user_namespace(cells: Cells) -> None:
    mine = namespaces("self")
    for process in (cells.supervisor, *cells.streams, *cells.trees):
        theirs = namespaces(process)
        assert all(mine[kind] != theirs[kind] for kind in mine), theirs
        interfaces = Path(f"/proc/{process}/net/dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in interfaces] in ([], ["lo"]), interfaces
    for process, wanted in [(cells.supervisor, FILES | 1 << SYS_ADMIN | 1 << SYS_CHROOT | 1 << SETPCAP),
                            *[(one, 0) for one in cells.streams],
                            *[(one, FILES) for one in cells.trees]]:
        seen = status(process)
        assert int(seen["CapEff"], 16) == int(seen["CapPrm"], 16) == int(seen["CapBnd"], 16) == wanted
    assert set(os.listdir(f"/proc/{cells.supervisor}/root")) == {"unpack", "layers", "empty"}


def test_a_worker_sees_its_own_tree_or_nothing(cells: Cells) -> None:
    for process in cells.streams:
        assert os.listdir(f"/proc/{process}/root") == []
    (tree,) = cells.trees
    own = (cells.staging / "unpack/work/0/fs").stat()
    for way in ("root", "cwd", "fd/4"):
        seen = os.stat(f"/proc/{tree}/{way}")
        assert (seen.st_dev, seen.st_ino) == (own.st_dev, own.st_ino), way


def test_a_worker_has_only_descriptors_of_its_own_layer(cells: Cells) -> None:
    (tree,) = cells.trees
    work = cells.staging / "unpack/work/0"
    own = {path.stat().st_ino for path in (work / "marks", work / "fs", *(work / "fs").rglob("*"))}
    downloads = {path.stat().st_ino for path in (cells.staging.parent / "partial").iterdir()}
    for process in (*cells.streams, tree):
        for number in os.listdir(f"/proc/{process}/fd"):
            kind, seen = os.readlink(f"/proc/{process}/fd/{number}"), os.stat(f"/proc/{process}/fd/{number}")
            assert not kind.startswith("socket:"), f"{process} {number} {kind}"
            if kind.startswith(("pipe:", "anon_inode:[eventfd]")):
                continue
            assert seen.st_ino in (own if process == tree else downloads), f"{process} {number} {kind}"


def test_a_jails_root_is_read_only_and_noexec(cells: Cells) -> None:
    for process in (cells.fetcher, cells.supervisor):
        for line in Path(f"/proc/{process}/mountinfo").read_text().splitlines():
            place, flags = line.split()[4:6]
            assert {"nosuid", "nodev", "noexec"} <= set(flags.split(",")), line
            assert "ro" in flags.split(",") or place in ("/blobs", "/partial", "/unpack"), line


def test_an_import_has_no_network(store: puller.Store) -> None:
    archive = store.root / "archive"
    os.mkfifo(archive)
    running = puller.Running(store, store.staging(), {"operation": "import"}, archive=archive)
    with archive.open("wb"):        # it waits for the archive's data
        deadline = time.monotonic() + 30
        while status(running.process.pid)["Seccomp"] != "2":
            assert time.monotonic() < deadline, "the jail is not set up"
            time.sleep(0.02)
        assert namespaces(running.process.pid)["net"] != namespaces("self")["net"]
    assert running.finish().code == 1       # an empty archive
