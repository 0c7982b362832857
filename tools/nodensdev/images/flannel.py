# SPDX-License-Identifier: Apache-2.0
"""flannel's daemon as an image, for rootless nodes whose pods it connects.

    flannel:1
"""
from pathlib import Path

from ..env import goprograms
from . import debian
from .layer import LayerTar
from .layout import Layout
from .own import NAME

IMAGE = f"{NAME}/flannel:1"


def fill(layout: Layout, work: Path) -> None:
    root = work / "tree"
    debian.unpack(debian.packages("flannel"), root)
    with LayerTar(work / "flannel.tar") as tar:
        tar.tree(root, frozenset())
        tar.copy("usr/local/bin/flannel", goprograms.ensure("flannel") / "flannel")
        if "tmp" not in tar.seen:
            tar.directory("tmp", 0o1777)
    layer = layout.add_layer(tar)
    layout.name(IMAGE, layout.add_manifest([layer], {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}))


def inputs() -> list[str]:
    return [debian.RECIPE, *debian.packages("flannel"), goprograms.key("flannel")]
