# SPDX-License-Identifier: Apache-2.0
"""A registry's storage with images in it: pushed once to a real registry, then kept in the cache and copied."""
import shutil
import socket
from pathlib import Path

from .. import images
from ..env import cache
from .processes import end, start
from .site import Site


def filled(sets: tuple[str, ...] = images.SERVED) -> Path:
    """The storage of a registry to which these sets have been pushed."""
    key = cache.key_of(*(images.key(name) for name in sets))
    return cache.ensure("registry-storage", "-".join(sets), key, lambda path: fill(sets, path)) / "storage"


def fill(sets: tuple[str, ...], path: Path) -> None:
    with cache.scratch("registry") as directory:
        site = Site(directory / "site", port=free_port())
        site.prepare()
        processes = start(site, None)
        try:
            site.wait()
            site.push(sets)
        finally:
            end(processes)
        shutil.copytree(site.directory / "storage", path / "storage")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
