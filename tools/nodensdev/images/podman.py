# SPDX-License-Identifier: Apache-2.0
"""A container engine as an image: Debian's podman for user 1000, with an OCI archive inside that it can load without a registry.

    podman:1    /archive.tar is the image that it runs; storage is at /storage, which has to be a volume: overlay does not lie on overlay
"""
from pathlib import Path

from . import debian
from .layer import LayerTar
from .layout import Layout
from .own import NAME

USER, HOME, STORAGE = 1000, "home/podman", "storage"
PROGRAM = "usr/bin/busybox"
# Every ID of a pod's 65536 but root and the engine's own user.
SUBORDINATE = f"podman:1:999\npodman:{USER + 1}:64534\n"
FILES = {
    "etc/passwd": f"root:x:0:0:root:/root:/bin/sh\npodman:x:{USER}:{USER}::/{HOME}:/bin/sh\n",
    "etc/group": f"root:x:0:\npodman:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\n",
    "etc/subuid": SUBORDINATE, "etc/subgid": SUBORDINATE,
    # The pod's cgroup is read-only inside, and there is no systemd and no journal.
    "etc/containers/containers.conf": '[containers]\ncgroups = "disabled"\nnetns = "none"\nlog_driver = "k8s-file"\n'
                                      '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "crun"\n',
    "etc/containers/storage.conf": f'[storage]\ndriver = "overlay"\ngraphroot = "/{STORAGE}/graph"\nrootless_storage_path = '
                                   f'"/{STORAGE}/graph"\nrunroot = "/tmp/run"\n',
    "etc/containers/policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}\n',
}
# Debian has them set-user-ID. As root of the pod, without CAP_SYS_ADMIN there, they may not write the map of a namespace that another user
# owns; as that
# user with one capability they may.
CAPABLE = {"usr/bin/newuidmap": "cap_setuid", "usr/bin/newgidmap": "cap_setgid"}


def inner_layer(program: Path, tar: LayerTar) -> None:
    tar.directory("bin")
    tar.copy("bin/busybox", program)
    for name in debian.applets(program):
        tar.hard_link(f"bin/{name}", "bin/busybox")
    for name in ("dev", "proc", "sys", "etc"):
        tar.directory(name)
    tar.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\nsomebody:x:33:33::/:/bin/sh\n")


def inner_archive(program: Path, work: Path) -> Path:
    """The image that the engine runs: one busybox."""
    layout = Layout.create(work / "inner")
    with LayerTar(work / "inner.tar") as tar:
        inner_layer(program, tar)
    layer = layout.add_layer(tar)
    layout.name(f"{NAME}/inner:1", layout.add_manifest([layer], {"Cmd": ["sh"], "Env": ["PATH=/bin"]}))
    layout.close()
    layout.write_archive(work / "archive.tar")
    return work / "archive.tar"


def outer_layer(root: Path, archive: Path, tar: LayerTar) -> None:
    tar.tree(root, frozenset(FILES) | frozenset(CAPABLE))
    for name, text in FILES.items():
        tar.file(name, text.encode())
    for name, capability in CAPABLE.items():
        tar.file(name, (root / name).read_bytes(), 0o755, capability=capability)
    tar.copy("archive.tar", archive, 0o644)
    tar.directory(HOME, 0o755, USER, USER)
    for name in ("tmp", "var/tmp"):
        if name not in tar.seen:
            tar.directory(name, 0o1777)


def fill(layout: Layout, work: Path) -> None:
    root = work / "tree"
    debian.unpack(debian.packages("podman"), root)
    archive = inner_archive(root / PROGRAM, work)
    with LayerTar(work / "outer.tar") as tar:
        outer_layer(root, archive, tar)
    layer = layout.add_layer(tar)
    layout.name(f"{NAME}/podman:1", layout.add_manifest([layer], {"User": f"{USER}:{USER}", "WorkingDir": f"/{HOME}", "Env": [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", f"HOME=/{HOME}", "XDG_RUNTIME_DIR=/tmp"]}))


def inputs() -> list[str]:
    return [debian.RECIPE, *debian.packages("podman")]
