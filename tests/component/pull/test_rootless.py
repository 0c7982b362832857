# SPDX-License-Identifier: Apache-2.0
"""Pulls in a rootless node: root of a user namespace with 65536 IDs, unprivileged outside."""
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodenstest import fake_registry, puller
from nodenstest.images import Image, directory, entry, tar

FIRST, COUNT = 300000, 65536
BEFORE = (sys.executable, str(Path(__file__).with_name("rootless.py")), str(FIRST), str(COUNT))


@pytest.fixture
def node() -> Iterator[puller.Store]:
    """A store owned by the node's root."""
    with puller.scratch() as path:
        path.chmod(0o711)
        for program in (puller.PROGRAM, puller.UNPACKER):
            shutil.copy(program, path)
        store = puller.Store(path / "store")
        give(store.root)
        yield store


def give(top: Path) -> None:
    for path in (top, *top.rglob("*")):
        os.chown(path, FIRST, FIRST)


def pull(store: puller.Store, reference: str) -> tuple[puller.Result, Path]:
    staging = store.staging()
    give(staging)
    return start(store, staging, reference).finish(), staging


def start(store: puller.Store, staging: Path, reference: str) -> puller.Running:
    programs = [str(store.root.parent / Path(program).name) for program in (puller.PROGRAM, puller.UNPACKER)]
    return puller.Running(store, staging, puller.request(reference, store), program=programs[0], unpacker=programs[1], before=BEFORE)


def test_owners_are_the_nodes_own(node: puller.Store, registry: fake_registry.Registry) -> None:
    image = Image().layer(tar(directory("etc", uid=7, gid=8), entry("etc/passwd", b"x", uid=65535, mode=0o4755)))
    image.layer(tar(entry("etc/more", b"y")), "zstd")
    result, staging = pull(node, registry.serve(image))
    lower, upper = node.stack(result.image, staging)
    file, implied = (lower / "etc/passwd").stat(), (upper / "etc").stat()
    assert (file.st_uid, file.st_gid, file.st_mode & 0o7777) == (FIRST + 65535, FIRST, 0o4755)
    assert (implied.st_uid, implied.st_gid) == (FIRST + 7, FIRST + 8)


def test_an_owner_outside_the_nodes_ids_is_rejected_with_its_number(node: puller.Store, registry: fake_registry.Registry) -> None:
    result, staging = pull(node, registry.serve(Image().layer(tar(entry("big", b"x", uid=70000)))))
    assert "70000" in result.error["message"]
    assert not list(puller.trees(staging).iterdir())


def test_a_store_of_another_user_is_not_accessible(node: puller.Store, registry: fake_registry.Registry) -> None:
    """The store of another user: both programs fail and change nothing."""
    staging = node.staging()        # root's
    running = start(node, staging, registry.serve(Image().layer(tar(entry("a", b"x")))))
    assert running.finish().code != 0
    assert not list(staging.glob("*/*"))
