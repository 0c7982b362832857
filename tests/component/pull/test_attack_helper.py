# SPDX-License-Identifier: Apache-2.0
"""Attacks by a compromised fetcher, decompressor, archive reader or unpacker.

Those of evil.c run inside their real jails; evil_fetcher.py and evil_unpacker.py replace the whole
program under a real nodens-cri.
"""
import ctypes
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest import fake_registry, puller, runtimes
from nodenstest.images import Image, directory, entry, tar

HERE = Path(__file__).parent
HONEST = tar(directory("etc"), entry("etc/passwd", b"root:x:0:0:the real one:/root:/bin/sh\n"))
ALWAYS = {"fork", "unshare", "mount", "open_tree", "chroot", "ptrace", "process_vm_readv", "kill", "kill all", "execve", "io_uring", "bpf",
          "keyctl", "userfaultfd",
          "open_by_handle_at", "unix socket", "pair of datagram sockets"}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def attempts(result: puller.Result) -> dict[str, str]:
    """Returns each attempt with its error, or "worked"."""
    found = dict(re.findall(r"^attempt: (.*): (\w+)$", result.errors, re.MULTILINE))
    assert ALWAYS <= set(found), result.explain()
    assert {found[what] for what in ALWAYS} <= {"EPERM", "ENOSYS"}, found
    return found


def picture(root: Path) -> dict[Path, tuple[int, ...]]:
    return {path: (at.st_ino, at.st_mode, at.st_size, at.st_mtime_ns, at.st_ctime_ns) for path in root.rglob("*") for at in [path.lstat()]}


def evil(role: str) -> str:
    return str(puller.BUILD / f"tests/component/pull/evil-{role}")


def landlock() -> int:
    """Returns the Landlock version of this kernel; 0 = none."""
    return max(0, ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1))


# ---- in their jails


def test_code_in_the_fetcher_reaches_no_tree_and_no_other_process(store: puller.Store, registry: fake_registry.Registry) -> None:
    """Code in the fetcher's jail opens trees, forks, makes unix sockets, attacks the kernel."""
    result, staging = puller.run(store, puller.request(registry.serve(Image().layer(HONEST)), store), program=evil("fetcher"))
    found = attempts(result)
    assert result.error["message"] == "the attack is over"
    for what in ("unpack", "layers", "work beside blobs", "proc"):
        assert found[what] in ("ENOENT", "EACCES"), (what, found[what])
    assert found["make a directory beside blobs"] == "EPERM" and found["the channel to another socket"] != "worked"
    assert not list(puller.trees(staging).iterdir())


@pytest.mark.skipif(landlock() < 4, reason="needs Landlock version 4, for TCP ports")
def test_landlock_confines_the_fetcher(store: puller.Store, registry: fake_registry.Registry) -> None:
    """Code in the fetcher's jail listens on a port, which its system call filter would allow."""
    result, _ = puller.run(store, puller.request(registry.serve(Image().layer(HONEST)), store), program=evil("fetcher"))
    assert attempts(result)["bind"] == "EACCES"


def test_code_in_the_fetcher_can_leave_nothing_but_files(store: puller.Store, registry: fake_registry.Registry) -> None:
    """Code in the fetcher's jail leaves links and odd files where others would use them.

    These are links, directories and files with future times, for a later pull or the daemon.
    """
    result, staging = puller.run(store, puller.request(registry.serve(Image().layer(HONEST)), store), program=evil("fetcher"))
    found = attempts(result)
    for what in ("symlink in partial", "symlink in blobs", "directory in partial", "hard link in partial", "rename in partial",
                 "time of partial", "FIFO in partial"):
        assert found[what] == "EPERM", (what, found[what])
    assert not list(store.partial.iterdir()) and not list((staging / "blobs").iterdir())


def test_code_in_the_archive_reader_reaches_only_its_own_tree(store: puller.Store, registry: fake_registry.Registry) -> None:
    """The archive reader leaves its tree, starts processes, and forges another stream's digest."""
    result, staging = puller.run(store, puller.request(registry.serve(Image().layer(HONEST)), store), unpacker=evil("tar"))
    found = attempts(result)
    assert {found[way]
            for way in ("/unpack", "/layers", "/../unpack/layers", "../../../layers", "/proc/self/fd/4", "/empty")} == {"ENOENT"}, found
    assert found["parent of the root"] == "EXDEV" and found["block device"] == "EPERM" and "another descriptor" not in found
    # it is not trusted: the hash worker's digest names the layer
    assert found["forged report"] == "worked"
    assert [layer["diffId"] for layer in result.unpacked] == ["sha256:" + sha(HONEST)] and result.done
    assert [path.name for path in puller.trees(staging).iterdir()] == [sha(HONEST)]


def test_code_in_the_archive_reader_cannot_change_a_finished_layer(store: puller.Store, registry: fake_registry.Registry) -> None:
    """The reader of the second layer accesses the first one, of this pull and of the store."""
    done, first = puller.run(store, puller.request(registry.serve(Image().layer(HONEST)), store))
    store.commit(first)
    before = picture(store.layers)
    second = registry.serve(Image().layer(HONEST).layer(tar(entry("etc/more", b"y"))), tag="2")
    result, staging = puller.run(store, puller.request(second, store), unpacker=evil("tar"))
    assert done.done and result.done and attempts(result)
    assert picture(store.layers) == before
    assert len(list(puller.trees(staging).iterdir())) == 1


def test_code_that_finalizes_a_layer_cannot_change_the_layers_below(store: puller.Store, registry: fake_registry.Registry) -> None:
    """A finalizing process writes, links, moves and remounts the layer below, which it can read."""
    # etc is implied, so the layer is finalized
    image = Image().layer(HONEST).layer(tar(entry("etc/more", b"y")))
    result, staging = puller.run(store, puller.request(registry.serve(image), store), unpacker=evil("finalize"))
    found = attempts(result)
    assert found["layer below seen"] == "worked" and found["parent of a layer below"] == found["parent of the root"] == "EXDEV"
    tried = {what: error for what, error in found.items() if what.endswith(" below") or what.startswith(("hard link", "move"))}
    tried.pop("parent of a layer below")
    assert len(tried) == 12 and set(tried.values()) <= {"EROFS", "EXDEV", "EPERM", "ENOENT"}, tried
    below = puller.trees(staging) / sha(HONEST) / "fs"
    assert (below / "etc/passwd").read_bytes().startswith(b"root:x:0:0:the real one") and sorted(os.listdir(below)) == ["etc"]


def test_a_decompressor_cannot_choose_a_diff_id(store: puller.Store, registry: fake_registry.Registry) -> None:
    """A decompressor outputs its own archive, and reports a digest for it."""
    result, staging = puller.run(store, puller.request(registry.serve(Image().layer(HONEST)), store), unpacker=evil("decompress"))
    found = attempts(result)
    assert found["open"] == found["openat"] == "EPERM"
    assert f"a layer unpacks to sha256:{sha(bytes(1024))}, the image's config has sha256:{sha(HONEST)}" in result.error["message"]
    assert not list(puller.trees(staging).iterdir()) and not result.unpacked


# ---- under a daemon


class Node:
    """A nodens-cri with replaced helpers, which can be switched back to the real ones."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.runtime = directory, runtimes.NodensCri(directory / "node", runtimes.messages())
        self.client: Any = None

    def start(self, plan: dict[str, object], **programs: str) -> None:
        """Programs by their setting; each runs from the scratch directory that has its plan."""
        (self.directory / "plan.json").write_text(json.dumps(plan))
        for setting, script in programs.items():
            shutil.copy(HERE / script, self.directory / script)
            (self.directory / script).chmod(0o755)
            self.runtime.settings[setting] = str(self.directory / script)
        self.client = self.runtime.start()

    def refusal(self, reference: str) -> str:
        """Returns the error of a rejected pull."""
        with pytest.raises(Exception) as caught:
            self.client.pull(reference)
        return str(caught.value.details() if hasattr(caught.value, "details") else caught.value)

    def layers(self) -> list[str]:
        return sorted(path.name for path in (self.directory / "node/images/layers").iterdir())

    def honest(self, registry: fake_registry.Registry) -> Path:
        """Pulls the honest image with the real programs; returns its layer's tree."""
        self.runtime.stop()
        self.runtime.settings = {}
        self.runtime.start().pull(registry.serve(Image().layer(HONEST)))
        return self.directory / "node/images/layers" / sha(HONEST) / "fs"


@pytest.fixture
def node() -> Iterator[Node]:
    runtimes.make_state_writable()
    with runtimes.scratch() as directory:
        (directory / "node").mkdir(exist_ok=True)
        made = Node(directory)
        try:
            yield made
        finally:
            made.runtime.stop()


# Attacks of the fetcher, by their method in evil_fetcher.py, and the daemon's errors.
TRICKS = {
    "plant": "the unpacker did not make the layer",
    "say": "invalid event from nodens-fetch",
    "exchange": "the unpacker did not make the layer",
    "rebase": "the unpacker did not make the layer",
    "unsynced": "nodens-unpack",
    "linger": "nodens-unpack",
    "directory": "the unpacker did not make the layer",
    "swap": "the unpacker did not make the layer",
    "nonsense": "invalid message from nodens-fetch",
    "flood": "finish request while a layer was being unpacked",
    "retitle": "the unpacker did not make the layer",
    "recontent": "the unpacker did not make the layer",
    "archived": "the unpacker did not make the layer",
    "climb": "the unpacker did not make the layer",
    "double": "an artifact was offered as an image",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_a_compromised_fetcher_cannot_place_a_tree(node: Node, registry: fake_registry.Registry, trick: str) -> None:
    """A compromised fetcher plants trees and forges the unpacker's events.

    It also exchanges archives, skips the sync and sends invalid messages.
    """
    node.start({"victim": sha(HONEST), "archive": HONEST.hex()}, fetchHelper="evil_fetcher.py")
    assert TRICKS[trick] in node.refusal(f"evil.example/{trick}:1")
    assert node.layers() == []
    assert (node.honest(registry) / "etc/passwd").read_text().startswith("root:x:0:0:the real one"), (
        "an honest image has the attacker's layer"
    )
    assert node.layers() == [sha(HONEST)]


@pytest.mark.parametrize("trick", ["link", "tree", "file", "fifo"])
def test_a_compromised_unpacker_cannot_place_a_link_in_the_store(node: Node, trick: str) -> None:
    """A compromised unpacker offers a link, or a tree or description that is a link or a FIFO."""
    (node.directory / "plan.json").write_text("{}")
    node.start({"victim": sha(HONEST), "chain": sha(HONEST), "elsewhere": str(node.directory / "elsewhere"), "trick": trick, "archive": ""},
               fetchHelper="evil_fetcher.py", unpackHelper="evil_unpacker.py")
    words = node.refusal("evil.example/plant:1")
    assert "layer 0" in words and "the unpacker did not make" not in words, words
    assert node.layers() == []
