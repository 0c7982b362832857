# SPDX-License-Identifier: Apache-2.0
"""The two cells of nodens-pull, looked at from outside while it works: src/pull/jail.h has the table of what each may do."""
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake
import helper
import pytest
from images import Image, directory, entry, tar

GOOD = tar(directory("etc"), entry("etc/passwd", b"root:x:0:0\n"))
CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETFCAP = 0, 1, 3, 4, 31


def status(process: int) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":\t" in line)


def namespaces(process: int | str) -> dict[str, str]:
    return {kind: os.readlink(f"/proc/{process}/ns/{kind}") for kind in ("user", "mnt", "pid", "net", "ipc", "uts")}


def children(process: int) -> list[int]:
    return [int(found) for found in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.fixture
def cells(store: helper.Store, registry: fake.Registry) -> Iterator[tuple[int, int]]:
    """A pull that waits for its registry: the network's process, and the unpacker's."""
    asked, go_on = threading.Event(), threading.Event()

    def wait(_: fake.Registry, handler: Any) -> None:
        if "/blobs/" in handler.path:
            asked.set()
            go_on.wait(helper.DEADLINE)

    reference = registry.serve(Image().layer(GOOD))
    registry.hook = wait
    running = helper.Running(store, store.staging(), helper.request(reference, store, noProgressSeconds=60))
    try:
        assert asked.wait(helper.DEADLINE), "the registry was never asked"
        found = children(running.process.pid)
        assert len(found) == 1, found
        yield running.process.pid, found[0]
    finally:
        go_on.set()
        assert running.finish().code == 0


def test_neither_cell_can_gain_anything(cells: tuple[int, int]) -> None:
    for process in cells:
        seen = status(process)
        assert seen["NoNewPrivs"] == "1" and seen["Seccomp"] == "2" and int(seen["CapInh"], 16) == int(seen["CapAmb"], 16) == 0
        limits = Path(f"/proc/{process}/limits").read_text()
        assert "Max core file size        0                    0" in limits and "Max open files            1024" in limits


def test_the_networks_cell_has_no_capability_and_sees_only_what_it_needs(cells: tuple[int, int]) -> None:
    network, _ = cells
    seen = status(network)
    assert int(seen["CapEff"], 16) == int(seen["CapPrm"], 16) == int(seen["CapBnd"], 16) == 0
    assert namespaces(network)["mnt"] != namespaces("self")["mnt"] and namespaces(network)["net"] == namespaces("self")["net"]
    assert set(os.listdir(f"/proc/{network}/root")) <= {"ca", "etc", "layers", "partial", "staging"}
    assert not Path(f"/proc/{network}/root/etc/shadow").exists() and not Path(f"/proc/{network}/root/proc").exists()


def test_the_unpackers_cell_has_no_network_and_no_power_outside_of_its_own_users(cells: tuple[int, int]) -> None:
    _, unpacker = cells
    seen, mine, theirs = status(unpacker), namespaces("self"), namespaces(unpacker)
    assert all(mine[kind] != theirs[kind] for kind in mine), theirs
    assert int(seen["CapEff"], 16) == int(seen["CapBnd"], 16) == sum(1 << one for one in (CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETFCAP))
    assert set(os.listdir(f"/proc/{unpacker}/root")) == {"staging", "layers"}
    interfaces = Path(f"/proc/{unpacker}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] in ([], ["lo"]), interfaces


def test_a_cells_root_cannot_be_written_and_nothing_in_it_executes(cells: tuple[int, int]) -> None:
    for process in cells:
        for line in Path(f"/proc/{process}/mountinfo").read_text().splitlines():
            place, flags = line.split()[4:6]
            assert {"nosuid", "nodev", "noexec"} <= set(flags.split(",")), line
            assert "ro" in flags.split(",") or place in ("/staging", "/partial"), line
