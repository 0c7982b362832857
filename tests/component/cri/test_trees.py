# SPDX-License-Identifier: Apache-2.0
"""Unpacked images equal containerd's: both pull from one registry; trees are compared by path."""
import json
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nodenstest import images as make
from nodenstest import runtimes, tree

OWN = ["nodens/layers:gzip", "nodens/layers:zstd", "nodens/layers:none", "nodens/deep:60", "nodens/ids:1", "nodens/high-ids:1",
       "nodens/multi:1",
       "nodens/bulk:64m", "e2e-test-images/agnhost:2.66.1", "e2e-test-images/busybox:1.37.0-2"]
# Differences that are as they shall be: a test for each, and the reason.
EXPLAINED: dict[str, Callable[[tree.Difference], bool]] = {
    "no layer has this directory, so its time is that of the unpacking":
        lambda d: d.field == "mtime_ns" and d.kind == "directory" and recent(d.ours) and recent(d.theirs),
    "a layer implies this directory, which a lower one has: we keep that one's time, containerd gives it the time of the unpacking":
        lambda d: d.field == "mtime_ns" and d.kind == "directory" and not recent(d.ours) and recent(d.theirs),
    "a layer implies a directory where a lower one has a link to one: containerd takes owner and mode from the link's target, we follow no "
    "link":
        lambda d: d.path == "link-to-a" and d.field in ("mode", "uid", "gid"),
    "a time before 1970, which containerd makes 1970": lambda d: d.field == "mtime_ns" and d.theirs == 0 and isinstance(d.ours, int)
    and d.ours < 0,
}
BEGAN = time.time()


def hard_cases() -> make.Image:
    """Peculiarities of real images: implied directories, replaced types, links of all kinds, xattrs, odd names, fractions of seconds."""
    bottom = make.tar(make.directory("a", mode=0o751, uid=7, gid=8, mtime=1_500_000_000), make.entry("a/one", b"1"),
                      make.directory("a/sub", mode=0o2770, gid=9),
                      make.entry("a/sub/kept", b"kept"), make.symlink("link-to-a", "a"), make.entry("will-be-dir", b"x"),
                      make.directory("will-be-file"),
                      make.entry("will-be-file/child", b"x"), make.entry("will-be-link", b"x"), make.directory("opaque"),
                      make.entry("opaque/old", b"x"),
                      make.entry("implied/by/name", b"x"), make.directory("gone"), make.entry("gone/child", b"x"))
    middle = make.tar(make.entry("a/two", b"2"), make.entry("link-to-a/three", b"3"), make.directory("will-be-dir", mode=0o700),
                      make.entry("will-be-file", b"file"),
                      make.symlink("will-be-link", "a/one"), make.entry("opaque/new", b"new"), make.entry("opaque/.wh..wh..opq"),
                      make.entry(".wh.gone"),
                      make.entry("a/sub/.wh.kept"), make.entry("implied/by/more", b"y"))
    top = make.tar(make.entry("hard/first", b"same", mode=0o4755, uid=3), make.hardlink("hard/second", "hard/first"),
                   make.hardlink("hard/third", "hard/second"),
                   make.symlink("hard/soft", "first", uid=5, gid=6, mtime=1_600_000_000), make.hardlink("hard/soft2", "hard/soft"),
                   make.entry("fifo", kind=tarfile.FIFOTYPE, mode=0o620), make.entry("fraction", b"x", mtime=1_234_567_890.25),
                   make.entry("xattr", b"x", pax={"SCHILY.xattr.user.note": "hello"}),
                   make.entry("cap", b"x", mode=0o755, pax={"SCHILY.xattr.security.capability": make.file_capability()}),
                   make.entry("twice", b"first"), make.entry("twice", b"second", mode=0o600), make.directory("./dotted/"),
                   make.entry("./dotted/x", b"x"),
                   make.entry("/absolute", b"x"), make.entry("new\nline \\ \u00fc", b"x"), make.directory("closed", mode=0o000),
                   make.entry("closed/inside", b"x"),
                   make.entry("gone/again", b"again"), make.entry("old", b"x", mtime=-1), make.directory("sticky", mode=0o1777),
                   make.entry("a/sub/fresh", b"x"))
    return make.Image().layer(bottom).layer(middle, "zstd").layer(top)


@dataclass
class Pair:
    """Both runtimes, each with a store of its own."""

    ours: runtimes.NodensCri
    theirs: runtimes.Containerd
    site: runtimes.registry_server.Site

    def __post_init__(self) -> None:
        for runtime in (self.ours, self.theirs):
            runtimes.trust(self.site, runtime.certificates)
        self.our_client, self.their_client = self.ours.start(), self.theirs.start()

    def layers(self, name: str) -> list[Path]:
        """Pulls it with nodens-cri; the layers' trees, the lowest first."""
        client = self.our_client
        client.pull(name)
        request = client.pb.ImageStatusRequest(image=client.pb.ImageSpec(image=name), verbose=True)
        info = json.loads(client.images.ImageStatus(request, timeout=30).info["info"])
        assert self.ours.store
        return [self.ours.store / "layers" / chain.removeprefix("sha256:") / "fs" for chain in info["layers"]]

    def compare(self, name: str, place: Path) -> list[tree.Difference]:
        layers = self.layers(name)
        self.their_client.pull(name)
        (place / "theirs").mkdir()
        self.theirs.ctr("images", "mount", name, str(place / "theirs"))
        try:
            with tree.merged(layers, place / "ours") as ours:
                return tree.differences(tree.walk(ours), tree.walk(place / "theirs"))
        finally:
            self.theirs.ctr("images", "unmount", "--rm", str(place / "theirs"))


@pytest.fixture(scope="module")
def pair(messages: runtimes.Messages) -> Iterator[Pair]:
    with runtimes.registry() as site, runtimes.scratch() as directory:
        made = Pair(runtimes.NodensCri(directory / "n", messages), runtimes.Containerd(directory / "c", messages), site)
        yield made
        made.ours.stop()
        made.theirs.stop()


def recent(mtime: object) -> bool:
    return isinstance(mtime, int) and mtime / 1e9 > BEGAN - 1


def judge(found: list[tree.Difference]) -> None:
    unexplained = []
    for difference in found:
        reasons = [reason for reason, holds in EXPLAINED.items() if holds(difference)]
        print(f"{difference} ({', '.join(reasons)})" if reasons else difference)
        unexplained += [] if reasons else [str(difference)]
    assert not unexplained, "\n".join(unexplained)


@pytest.mark.parametrize("name", OWN)
def test_the_tree_of_a_test_image_equals_containerds(pair: Pair, name: str, tmp_path: Path) -> None:
    judge(pair.compare(f"{pair.site.name}/{name}", tmp_path))


def test_the_tree_of_hard_cases_equals_containerds(pair: Pair, tmp_path: Path) -> None:
    judge(pair.compare(pair.site.publish(hard_cases(), "own/hard-cases:1"), tmp_path))


MOVED = ("e2e-test-images/busybox:1.37.0-2", "nodens/multi:1", "nodens/ids:1")


def test_images_that_ctr_exports_are_imported(pair: Pair, tmp_path: Path, messages: runtimes.Messages) -> None:
    """As docs/from-containerd.md has it: one archive of all names, without the registry."""
    names = [f"{pair.site.name}/{name}" for name in MOVED]
    with runtimes.scratch() as directory:
        theirs, ours = runtimes.Containerd(directory / "c", messages), runtimes.NodensCri(directory / "n", messages)
        runtimes.trust(pair.site, theirs.certificates)
        ids = export(theirs, names, tmp_path / "images.tar")
        client = ours.start()
        done = subprocess.run([str(runtimes.program("src/nodens")), "import", "--socket", str(ours.socket), str(tmp_path / "images.tar")],
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        for name in names:
            image = image_of(client, name)
            assert image.id == ids[name]
            assert name in image.repo_tags
        ours.stop()


def image_of(client: Any, name: str) -> Any:
    return client.images.ImageStatus(client.pb.ImageStatusRequest(image=client.pb.ImageSpec(image=name)), timeout=30).image


def export(runtime: runtimes.Containerd, names: list[str], archive: Path) -> dict[str, str]:
    """Everything that containerd has, in one archive; the IDs by name."""
    client = runtime.start()
    for name in names:
        client.pull(name)
    listed = [line for line in runtime.ctr("images", "ls", "-q").split() if "@sha256:" not in line and not line.startswith("sha256:")]
    assert set(names) <= set(listed)
    # without --local, ctr does not wait until everything it receives is written
    runtime.ctr("images", "export", "--local", str(archive), *listed)
    ids = {name: image_of(client, name).id for name in names}
    runtime.stop()
    return ids
