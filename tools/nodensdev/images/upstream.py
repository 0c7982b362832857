# SPDX-License-Identifier: Apache-2.0
"""Upstream's end-to-end test images, made here: Debian trees and the suite's own programs under the suite's names.

The names come from the suite's manifest (test/utils/image/manifest.go), so that they follow the pinned version.
"""
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..command import Failure
from ..env import goprograms
from . import busybox as busybox_program
from . import debian
from .layer import LayerTar
from .layout import Descriptor, Layer, Layout

KUBERNETES = "k8s.io/kubernetes"
PATH = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\ntty:x:5:\nwww-data:x:33:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# A test of SupplementalGroups wants this user in this group.
AGNHOST_ACCOUNTS = {
    "etc/passwd": ACCOUNTS["etc/passwd"] + "user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n",
    "etc/group": ACCOUNTS["etc/group"]
                 + "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n",
}
# Upstream's image is an Alpine, and the image-volume test looks for that word in the volume.
KITTEN_OS_RELEASE = 'NAME="Debian tree in the place of Alpine Linux"\nID=debian\n'


@dataclass
class Workshop:
    """What the makers of images share: the layout they fill, the trees and the layers that several images have."""

    layout: Layout
    work: Path
    sources: Path
    programs: Path
    names: dict[str, str]
    layers: dict[str, Layer] = field(default_factory=dict)

    def tar(self, name: str) -> LayerTar:
        return LayerTar(self.work / f"{name}.tar")

    def shared(self, name: str, make: Callable[["Workshop", LayerTar], None]) -> Layer:
        """A layer that is made once."""
        if name not in self.layers:
            with self.tar(name) as tar:
                make(self, tar)
            self.layers[name] = self.layout.add_layer(tar)
        return self.layers[name]

    def tree(self, name: str) -> Path:
        path = self.work / f"tree-{name}"
        if not path.exists():
            debian.unpack(debian.packages(name), path)
        return path

    def image(self, identity: str, layers: list[Layer], config: dict[str, Any]) -> Descriptor:
        """Names an image after the suite's manifest. The label makes two versions of one content two images."""
        name = self.names[identity]
        labelled = PATH | config | {"Labels": {"org.opencontainers.image.version": name.rsplit(":", 1)[1]}}
        image = self.layout.add_index([self.layout.add_manifest(layers, labelled)])
        self.layout.name(name, image)
        return image


def image_names(sources: Path) -> dict[str, str]:
    """The suite's image names by their identifier, read from its manifest."""
    text = (sources / "test/utils/image/manifest.go").read_text()
    registries = dict(re.findall(r'^\s+(\w+Registry):\s+"([^"]+)"', text, re.MULTILINE))
    configs = re.findall(r'configs\[(\w+)\] = Config\{list\.(\w+), "([^"]+)", "([^"]+)"\}', text)
    if not configs or not registries:
        raise Failure("cannot read the image names from the suite's manifest.go; its form has changed: see images/upstream.py")
    return {identity: f"{registries[registry]}/{name}:{version}" for identity, registry, name, version in configs}


def base_layer(shop: Workshop, tar: LayerTar) -> None:
    root = shop.tree("base")
    tar.tree(root, frozenset(ACCOUNTS) | {"usr/bin/nc"})
    for name, text in ACCOUNTS.items():
        tar.file(name, text.encode())
    tar.symlink("usr/bin/nc", "nc.openbsd")  # what Debian's alternatives would do
    for name in debian.applets(root / "usr/bin/busybox"):
        if not {f"usr/bin/{name}", f"usr/sbin/{name}"} & tar.seen:
            tar.symlink(f"usr/bin/{name}", "busybox")
    for name in ("tmp", "var/tmp"):
        if name not in tar.seen:
            tar.directory(name, 0o1777)


def base(shop: Workshop) -> Layer:
    return shop.shared("base", base_layer)


def busybox_layer(shop: Workshop, tar: LayerTar) -> None:
    """Laid out as the busybox project's own image: one file, its applets hard links to it."""
    program = busybox_program.ensure()
    tar.directory("bin")
    tar.copy("bin/busybox", program)
    for name in debian.applets(program):
        tar.hard_link(f"bin/{name}", "bin/busybox")
    for name in ("dev", "etc", "root", "usr", "usr/bin", "usr/sbin", "home", "var"):
        tar.directory(name, 0o700 if name == "root" else 0o755)
    tar.directory("tmp", 0o1777)
    for name, text in ACCOUNTS.items():
        tar.file(name, text.encode())


def busybox(shop: Workshop) -> None:
    shop.image("BusyBox", [shop.shared("busybox", busybox_layer)], {"Cmd": ["sh"]})


def pause_layer(shop: Workshop, tar: LayerTar) -> None:
    program = shop.work / "pause"
    source = shop.sources / "build/pause/linux/pause.c"
    version = shop.names["Pause"].rsplit(":", 1)[1]
    done = subprocess.run(["gcc", "-Os", "-static", "-s", f"-DVERSION={version}", "-o", str(program), str(source)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"cannot compile upstream's pause program (Debian packages gcc and libc6-dev):\n{done.stderr[-2000:]}")
    tar.copy("pause", program)


def pause(shop: Workshop) -> Descriptor:
    layer = shop.shared("pause", pause_layer)
    return shop.image("Pause", [layer], {"Entrypoint": ["/pause"], "User": "65535:65535"})


def registry_files(shop: Workshop, image: Descriptor, name: str, tag: str) -> dict[str, bytes]:
    """An image as agnhost's fake-registry-server wants it on disk."""
    files = {f"var/registry/{name}/manifests/{tag}": image.digest.encode() + b"\n"}
    for item in shop.layout.children(image):
        kind = "blobs" if "config" in item.media_type or "layer" in item.media_type else "manifests"
        digest = item.digest.removeprefix("sha256:")
        files[f"var/registry/{name}/{kind}/sha256/{digest[:2]}/{digest}/data"] = shop.layout.blob(item.digest).read_bytes()
    return files


def agnhost_layer(shop: Workshop, tar: LayerTar) -> None:
    tar.copy("agnhost", shop.programs / "agnhost")
    tar.symlink("agnhost-2", "agnhost")
    tar.directory("uploads")
    tar.directory("usr/local/bin")
    tar.symlink("usr/local/bin/iperf", "/usr/bin/iperf")
    for name in ("localhost.crt", "localhost.key"):
        tar.file(name, (shop.sources / "test/images/agnhost/porter" / name).read_bytes())
    for name, text in AGNHOST_ACCOUNTS.items():
        tar.file(name, text.encode())
    tar.directory("home/user-defined-in-image", 0o755, 1000, 1000)
    listed = (shop.sources / "test/images/agnhost/fakeregistryserver/images.txt").read_text()
    served = [line.split() for line in listed.splitlines()]
    for name, tag, internal in (words for words in served if words and not words[0].startswith("#")):
        image = shop.layout.images[f"registry.k8s.io/{name}:{tag}"]
        for path, data in sorted(registry_files(shop, image, name, internal).items()):
            tar.file(path, data)


def agnhost(shop: Workshop) -> None:
    layers = [base(shop), shop.shared("agnhost", agnhost_layer)]
    for identity in ("Agnhost", "AgnhostPrev"):
        shop.image(identity, layers, {"Entrypoint": ["/agnhost"], "Cmd": ["pause"], "ExposedPorts": {"8080/tcp": {}}})


def nonewprivs_layer(shop: Workshop, tar: LayerTar) -> None:
    tar.file("usr/local/bin/nnp", (shop.programs / "nonewprivs").read_bytes(), 0o6755)


def nonewprivs(shop: Workshop) -> None:
    shop.image("Nonewprivs", [base(shop), shop.shared("nonewprivs", nonewprivs_layer)], {"Cmd": ["nnp"]})


def nonroot(shop: Workshop) -> None:
    shop.image("NonRoot", [base(shop)], {"User": "1234", "Cmd": ["bash"]})


def plain_debian(shop: Workshop) -> None:
    for identity in ("GlibcDnsTesting", "IpcUtils"):
        shop.image(identity, [base(shop)], {"Cmd": ["bash"]})


def kitten_layer(shop: Workshop, tar: LayerTar) -> None:
    for name in ("kitten.jpg", "data.json"):
        tar.file(name, (shop.sources / "test/images/kitten/html" / name).read_bytes())
    tar.file("etc/os-release", KITTEN_OS_RELEASE.encode())


def kitten(shop: Workshop) -> None:
    layers = [base(shop), shop.shared("agnhost", agnhost_layer), shop.shared("kitten", kitten_layer)]
    shop.image("Kitten", layers, {"Entrypoint": ["/agnhost"], "Cmd": ["test-webserver"]})


def nginx_layer(shop: Workshop, tar: LayerTar) -> None:
    below = {path.relative_to(shop.tree("base")).as_posix() for path in shop.tree("base").rglob("*")}
    tar.tree(shop.tree("nginx"), frozenset(below))
    tar.file("etc/passwd", (ACCOUNTS["etc/passwd"] + "www-data:x:33:33::/var/www:/usr/sbin/nologin\n").encode())
    if "var/log/nginx" not in tar.seen:
        tar.directory("var/log/nginx")
    tar.symlink("var/log/nginx/access.log", "/dev/stdout")
    tar.symlink("var/log/nginx/error.log", "/dev/stderr")
    tar.symlink("etc/nginx/sites-enabled/default", "/etc/nginx/sites-available/default")


def nginx(shop: Workshop) -> None:
    layers = [base(shop), shop.shared("nginx", nginx_layer)]
    for identity in ("Nginx", "NginxNew"):
        shop.image(identity, layers, {"Cmd": ["nginx", "-g", "daemon off;"], "ExposedPorts": {"80/tcp": {}}})


MAKERS = (busybox, pause, agnhost, nonewprivs, nonroot, plain_debian, kitten, nginx)  # agnhost serves pause


def fill(layout: Layout, work: Path) -> None:
    """Makes every image of the set."""
    sources = goprograms.source_directory("images", KUBERNETES)
    shop = Workshop(layout, work, sources, goprograms.ensure("images"), image_names(sources))
    for make in MAKERS:
        make(shop)


def inputs() -> list[str]:
    trees = json.dumps([debian.packages(name) for name in ("base", "nginx")])
    return [goprograms.key("images"), busybox_program.key(), debian.RECIPE, trees]
