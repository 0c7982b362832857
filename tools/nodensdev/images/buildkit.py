# SPDX-License-Identifier: Apache-2.0
"""BuildKit as an image, for a pod with writable cgroups.

    buildkit:1    /context has a busybox for a build from scratch; /storage has to be a volume: overlay does not lie on overlay
"""
from pathlib import Path

from ..env import goprograms
from . import debian, engines, podman
from .layer import LayerTar
from .layout import Layout
from .own import NAME

FILES = {name: engines.FILES[name] for name in ("etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/subuid", "etc/subgid")}


def fill(layout: Layout, work: Path) -> None:
    root = work / "tree"
    debian.unpack(debian.packages("buildkit"), root)
    with LayerTar(work / "buildkit.tar") as tar:
        tar.tree(root, frozenset(FILES) | frozenset(podman.CAPABLE))
        for name, text in FILES.items():
            tar.file(name, text.encode())
        for name, capability in podman.CAPABLE.items():
            tar.file(name, (root / name).read_bytes(), 0o755, capability=capability)
        for name in ("buildkitd", "buildctl"):
            tar.copy(f"usr/local/bin/{name}", goprograms.ensure("buildkit") / name)
        tar.directory("context")
        tar.copy("context/busybox", root / podman.PROGRAM)
        for name in ("tmp", "var/tmp"):
            if name not in tar.seen:
                tar.directory(name, 0o1777)
    layer = layout.add_layer(tar)
    layout.name(f"{NAME}/buildkit:1", layout.add_manifest([layer], {"Env": [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]}))


def inputs() -> list[str]:
    texts = [Path(str(module.__file__)).read_text() for module in (engines, podman)]
    return [debian.RECIPE, *debian.packages("buildkit"), *texts, goprograms.key("buildkit")]
