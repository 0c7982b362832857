# SPDX-License-Identifier: Apache-2.0
"""The real registry (the distribution project's) inside of the Debian root, with TLS and, for tokens, the testbed's token server."""
import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodensdev.images.layout import Descriptor, Layout
from nodensdev.registry import site as testbed

from . import puller
from .images import Blob, Image

CACHE = Path("/cache/go")


def program(module: str, name: str) -> Path:
    """A program that `tools/dev gobin` has built; the newest where there are several."""
    found = sorted(CACHE.glob(f"{module}/*/{name}"), key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip(f"`tools/dev gobin {module}` has not built {name}")
    return found[-1]


class Site(testbed.Site):
    """A registry's directory and processes, in a chroot whose cache is only read."""

    def commands(self, *_: object) -> list[list[str]]:
        found = [[str(program("registry", "registry")), "serve", testbed.CONFIG]]
        if self.auth == "token":
            found.append([sys.executable, str(testbed.token_server.__file__), "token.json"])
        return found

    @property
    def name(self) -> str:
        return f"{testbed.HOST}:{self.port}"

    def trust(self, store: puller.Store, name: str | None = None, text: str | None = None) -> None:
        """Writes the hosts.toml by which a store's owner trusts this registry."""
        place = store.hosts / (name or f"{testbed.HOST}_{self.port}_")
        place.mkdir(parents=True, exist_ok=True)
        (place / "hosts.toml").write_text(text or f'server = "https://{self.name}"\nca = "{self.authority}"\n')

    def publish(self, image: Image | Blob, name: str, extra: tuple[Image, ...] = ()) -> str:
        """Pushes an image, or an index with the images in it."""
        with puller.scratch() as path:
            layout = Layout.create(path / "layout")
            for one in (image, *extra) if isinstance(image, Image) else extra:
                for blob in (*one.layers, one.config_blob(), one.manifest()):
                    layout.put(blob.data, blob.media_type)
            top = image.manifest() if isinstance(image, Image) else image
            stored = layout.put(top.data, top.media_type)
            layout.images[f"x/{name}"] = Descriptor(top.media_type, stored.digest, stored.size)
            self.client().push(layout, f"x/{name}")
        return f"{self.name}/{name}"


def free_ports() -> int:
    """A port that is free together with the next one."""
    for port in range(15000, 16000, 2):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
            return port
    raise OSError("no free ports")


@contextlib.contextmanager
def resolvable(directory: Path) -> Iterator[None]:
    """Makes the registry's name known in this chroot, whose mounts are its own."""
    hosts = directory / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {testbed.HOST}\n")
    if testbed.HOST in Path("/etc/hosts").read_text():
        yield
        return
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "/etc/hosts"], check=True)


@contextlib.contextmanager
def serving(auth: str) -> Iterator[Site]:
    with puller.scratch() as directory, resolvable(directory):
        site = Site(directory / "site", "127.0.0.1", free_ports(), auth)
        site.prepare()
        logs = [open(site.directory / f"log{n}", "wb") for n in range(2)]
        processes = [subprocess.Popen(command, cwd=site.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                     for command, log in zip(site.commands(), logs, strict=False)]
        try:
            site.wait()
            yield site
        finally:
            for process in processes:
                process.terminate()
                process.wait()
