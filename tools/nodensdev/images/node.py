# SPDX-License-Identifier: Apache-2.0
"""What a rootless node in a pod needs, without nodens' and Kubernetes' own programs, which tests mount into it.

    node:1    /usr/share/node/archive.tar is an image for a pod of that node, which is imported without a registry
"""
from pathlib import Path

from . import debian, podman
from .layer import LayerTar
from .layout import Layout
from .own import NAME

ARCHIVE = "usr/share/node/archive.tar"
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "etc/nsswitch.conf": "passwd: files\ngroup: files\n",
}


def fill(layout: Layout, work: Path) -> None:
    root = work / "tree"
    debian.unpack(debian.packages("node"), root)
    archive = podman.inner_archive(root / podman.PROGRAM, work)
    with LayerTar(work / "node.tar") as tar:
        tar.tree(root, frozenset(FILES))
        for name, text in FILES.items():
            tar.file(name, text.encode())
        tar.directory("usr/share/node")
        tar.copy(ARCHIVE, archive, 0o644)
        tar.symlink("usr/sbin/iptables", "iptables-nft")    # an alternative, which installing would have chosen
        for name in ("tmp", "var/tmp"):
            if name not in tar.seen:
                tar.directory(name, 0o1777)
    layer = layout.add_layer(tar)
    layout.name(f"{NAME}/node:1", layout.add_manifest([layer], {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"]}))


def inputs() -> list[str]:
    return [debian.RECIPE, *debian.packages("node"), Path(podman.__file__).read_text()]
