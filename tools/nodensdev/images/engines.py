# SPDX-License-Identifier: Apache-2.0
"""Engines for a pod with writable cgroups: Debian's podman, buildah, docker and systemd in one tree.

    engines:1    podman, buildah, docker; /archive.tar (OCI) and /rootfs.tar are an image that they run; /storage has to be a volume, since
                 overlay does not lie on overlay
    systemd:1    the same, with the signal that ends systemd
"""
from pathlib import Path

from . import debian, podman
from .layer import LayerTar
from .layout import Layout
from .own import NAME

STORAGE = podman.STORAGE
KEPT = ("/usr/lib/systemd/*",)    # of what images leave out
SUBORDINATE = "root:1:65535\n"    # every ID of a pod's 65536 but root
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    "etc/group": "root:x:0:\ndocker:x:999:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\n",
    "etc/subuid": SUBORDINATE, "etc/subgid": SUBORDINATE,
    # The pod has no systemd and no journal. Without a network helper, a container's network is its own loopback.
    "etc/containers/containers.conf": '[containers]\nnetns = "none"\nlog_driver = "k8s-file"\n'
                                      '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "crun"\n',
    "etc/containers/storage.conf": f'[storage]\ndriver = "overlay"\ngraphroot = "/{STORAGE}/graph"\nrunroot = "/run/containers/storage"\n',
    "etc/containers/policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}\n',
    "etc/machine-id": "",
}
# Units that belong to a host or to a package that is not installed.
MASKED = ("ldconfig.service", "systemd-udevd.service", "systemd-logind.service", "getty.target", "console-getty.service")


def outer_layer(root: Path, work: Path, tar: LayerTar) -> None:
    tar.tree(root, frozenset(FILES) | frozenset(podman.CAPABLE))
    for name, text in FILES.items():
        tar.file(name, text.encode())
    for name, capability in podman.CAPABLE.items():
        tar.file(name, (root / name).read_bytes(), 0o755, capability=capability)
    tar.copy("archive.tar", podman.inner_archive(root / podman.PROGRAM, work), 0o644)
    with LayerTar(work / "rootfs.tar") as inner:
        podman.inner_layer(root / podman.PROGRAM, inner)
    tar.copy("rootfs.tar", inner.path, 0o644)
    for name in ("iptables", "ip6tables"):    # alternatives, which installing would have chosen
        tar.symlink(f"usr/sbin/{name}", f"{name}-nft")
    for name in MASKED:
        tar.symlink(f"etc/systemd/system/{name}", "/dev/null")
    for name in ("tmp", "var/tmp"):
        if name not in tar.seen:
            tar.directory(name, 0o1777)


def fill(layout: Layout, work: Path) -> None:
    root = work / "tree"
    debian.unpack(debian.packages("engines"), root, KEPT)
    with LayerTar(work / "engines.tar") as tar:
        outer_layer(root, work, tar)
    layer = layout.add_layer(tar)
    config = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]}
    layout.name(f"{NAME}/engines:1", layout.add_manifest([layer], config))
    layout.name(f"{NAME}/systemd:1", layout.add_manifest([layer], config | {"StopSignal": "SIGRTMIN+3"}))


def inputs() -> list[str]:
    return [debian.RECIPE, *debian.packages("engines"), Path(podman.__file__).read_text()]
