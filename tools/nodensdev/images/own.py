# SPDX-License-Identifier: Apache-2.0
"""The project's own test images: what real images do to a runtime, each with a script inside that checks what came out.

Running any of them is a test: it exits 0 when the file system is as the image says, and else says what is not.
    layers   several layers: additions, replacements, whiteouts, an opaque directory, links across layers; gzip, zstd and plain
    ids      setuid, setgid and sticky files, a file capability, owners up to 65535
    high-ids owners above 65535, which no pod of 65536 IDs can show as they are
    multi    an index with two architectures and an attestation that is no image
    deep     60 layers, each of which changes the same files
    bulk     64 MiB in four layers, for measuring pulls
"""
import random
from collections.abc import Callable
from pathlib import Path

from ..project import TESTS
from . import debian
from .layer import LayerTar
from .layout import Layer, Layout, Platform

NAME = "registry.nodens.test:5000/nodens"
SCRIPTS = TESTS / "fixtures/images/checks"
DEEP = 60
BULK_LAYERS, BULK_SIZE = 4, 16 << 20
HIGH_IDS = (70_000, 100_000, 2_000_000_000)

Fill = Callable[[LayerTar], None]


class Bench:
    """The layout being filled, and a place for tars."""

    def __init__(self, layout: Layout, work: Path) -> None:
        self.layout = layout
        self.work = work
        self.count = 0
        tree = work / "tree-busybox"
        debian.unpack(["busybox-static"], tree)
        self.program = tree / "usr/bin/busybox"

    def layer(self, fill: Fill, compression: str = "gzip") -> Layer:
        self.count += 1
        with LayerTar(self.work / f"layer-{self.count}.tar") as tar:
            fill(tar)
        return self.layout.add_layer(tar, compression)

    def system(self, tar: LayerTar) -> None:
        """The bottom layer: a shell and its commands."""
        tar.directory("bin")
        tar.copy("bin/busybox", self.program)
        for name in debian.applets(self.program):
            tar.hard_link(f"bin/{name}", "bin/busybox")
        for name in ("dev", "proc", "sys", "etc"):
            tar.directory(name)
        tar.directory("tmp", 0o1777)
        tar.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n")
        tar.file("etc/group", b"root:x:0:\nuser:x:1000:\n")


def script(name: str) -> Fill:
    def fill(tar: LayerTar) -> None:
        tar.file("check", (SCRIPTS / f"{name}.sh").read_bytes(), 0o755)
    return fill


def publish(bench: Bench, tag: str, layers: list[Layer]) -> None:
    config = {"Cmd": ["/check"], "Env": ["PATH=/bin"]}
    bench.layout.name(f"{NAME}/{tag}", bench.layout.add_manifest(layers, config))


def layers_bottom(tar: LayerTar) -> None:
    for name in ("data", "data/kept", "data/opaque", "data/opaque/below", "data/gone-dir", "data/gone-dir/deep"):
        tar.directory(name)
    for name in ("data/kept/file", "data/gone-file", "data/replaced", "data/opaque/old", "data/opaque/below/old",
                 "data/gone-dir/deep/file", "data/becomes-dir"):
        tar.file(name, b"bottom\n")
    tar.directory("data/becomes-file")
    tar.file("data/becomes-file/inside", b"bottom\n")
    tar.file("data/linked", b"bottom\n")
    tar.symlink("data/symlink", "kept/file")


def layers_middle(tar: LayerTar) -> None:
    for name in ("data/gone-file", "data/gone-dir"):
        tar.whiteout(name)
    tar.opaque("data/opaque")
    tar.file("data/opaque/new", b"middle\n")
    tar.file("data/replaced", b"middle\n", 0o600)
    tar.file("data/becomes-file", b"middle\n")
    tar.directory("data/becomes-dir", 0o750)
    tar.file("data/becomes-dir/inside", b"middle\n")
    tar.file("data/linked", b"linked\n")  # a link's target is in its own layer: so do the field's tools write them
    tar.hard_link("data/hardlink", "data/linked")


def layers_top(tar: LayerTar) -> None:
    tar.file("data/gone-file", b"top\n")  # comes back
    tar.whiteout("data/kept/file")
    tar.directory("data/gone-dir")
    tar.file("data/gone-dir/new", b"top\n")
    tar.file("data/" + "long-name-" * 20 + "end", b"top\n")  # longer than ustar's 100 bytes
    tar.file("data/ünïcode", b"top\n")


def make_layers(bench: Bench) -> None:
    for compression in ("gzip", "zstd", "none"):
        fills = (bench.system, layers_bottom, layers_middle, layers_top, script("layers"))
        publish(bench, f"layers:{compression}", [bench.layer(fill, compression) for fill in fills])


def ids_layer(tar: LayerTar) -> None:
    tar.directory("ids")
    tar.file("ids/setuid", b"", 0o4755)
    tar.file("ids/setgid", b"", 0o2755, 0, 1000)
    tar.directory("ids/sticky", 0o1777)
    tar.directory("ids/setgid-dir", 0o2775, 1000, 1000)
    tar.file("ids/owned-1000", b"", 0o640, 1000, 1001)
    tar.file("ids/owned-65535", b"", 0o600, 65535, 65535)


def capability_layer(bench: Bench) -> Fill:
    def fill(tar: LayerTar) -> None:
        tar.directory("ids/capable")
        tar.file("ids/capable/busybox", bench.program.read_bytes(), 0o755, capability="cap_net_raw")
    return fill


def make_ids(bench: Bench) -> None:
    publish(bench, "ids:1", [bench.layer(fill) for fill in (bench.system, ids_layer, capability_layer(bench), script("ids"))])


def high_ids_layer(tar: LayerTar) -> None:
    tar.directory("ids")
    for number in HIGH_IDS:
        tar.file(f"ids/owned-{number}", b"", 0o644, number, number)


def make_high_ids(bench: Bench) -> None:
    publish(bench, "high-ids:1", [bench.layer(fill) for fill in (bench.system, high_ids_layer, script("high-ids"))])


def make_multi(bench: Bench) -> None:
    """The arm64 image holds no program: whoever picks it on amd64 finds out. The attestation is as build tools make it."""
    def mark(tar: LayerTar) -> None:
        tar.file("architecture", b"amd64\n")

    def foreign(tar: LayerTar) -> None:
        tar.file("architecture", b"arm64\n")

    layout = bench.layout
    config = {"Cmd": ["/check"], "Env": ["PATH=/bin"]}
    native = layout.add_manifest([bench.layer(bench.system), bench.layer(mark), bench.layer(script("multi"))], config)
    other = layout.add_manifest([bench.layer(foreign)], config, Platform("arm64", "v8"))
    nobody = layout.add_manifest([bench.layer(foreign)], {}, Platform("unknown", os="unknown"))
    layout.name(f"{NAME}/multi:1", layout.add_index([other, nobody, native]))


def deep_layer(number: int) -> Fill:
    def fill(tar: LayerTar) -> None:
        tar.directory("deep")
        tar.file("deep/last", f"{number}\n".encode())
        tar.file(f"deep/{number}", b"")
        if number >= 2:
            tar.whiteout(f"deep/{number - 2}")
    return fill


def make_deep(bench: Bench) -> None:
    fills = [bench.system, *map(deep_layer, range(DEEP - 2)), script("deep")]
    publish(bench, "deep:60", [bench.layer(fill) for fill in fills])


def bulk_layer(number: int) -> Fill:
    """Half of it compresses, as in real images."""
    def fill(tar: LayerTar) -> None:
        source = random.Random(number)
        tar.directory("bulk")
        for part in range(BULK_SIZE >> 20):
            tar.file(f"bulk/{number}-{part}", source.randbytes(1 << 19) + bytes([part]) * (1 << 19))
    return fill


def make_bulk(bench: Bench) -> None:
    fills = [bench.system, *map(bulk_layer, range(BULK_LAYERS)), script("bulk")]
    publish(bench, "bulk:64m", [bench.layer(fill) for fill in fills])


MAKERS = (make_layers, make_ids, make_high_ids, make_multi, make_deep, make_bulk)


def fill(layout: Layout, work: Path) -> None:
    bench = Bench(layout, work)
    for make in MAKERS:
        make(bench)


def inputs() -> list[str]:
    return [debian.RECIPE, *(path.read_text() for path in sorted(SCRIPTS.glob("*.sh")))]
