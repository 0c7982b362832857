# SPDX-License-Identifier: Apache-2.0
"""Disks that guests boot from.

Theory of operation
  A base disk is a sparse ext4 image, made by `mkfs.ext4 -d` from the guest root, the User-mode
  Linux modules and additions (a cluster's binaries); it is cached and never written. A guest writes
  to a copy-on-write overlay, which costs nothing to make. provision.py makes base disks on which a
  guest has run a script once (image imports).
"""
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..command import Failure
from ..project import TOOLS
from . import cache, chroot, machine, root, uml

RECIPE = "1"
IMAGE = "disk.img"
DEFAULT_SIZE = "16G"


@dataclass(frozen=True)
class Addition:
    """A file or directory that is copied onto a base disk. What lies in the cache is known by its path alone."""

    source: Path
    target: str

    def identity(self) -> str:
        if self.source.is_relative_to(cache.top()):
            return f"{self.target}={self.source.relative_to(cache.top())}"
        if self.source.is_dir():
            raise Failure(f"{self.source} is not in the cache: only single files can be added from elsewhere")
        return f"{self.target}={hashlib.sha256(self.source.read_bytes()).hexdigest()}"


def guest_files() -> tuple[Addition, ...]:
    return (
        Addition(TOOLS / "guest/job", "usr/lib/nodens-guest/job"),
        Addition(TOOLS / "guest/nodens-guest.service", "usr/lib/systemd/system/nodens-guest.service"),
        Addition(uml.modules(), f"usr/lib/modules/{uml.modules().name}"),
    )


def base(size: str = DEFAULT_SIZE, additions: tuple[Addition, ...] = ()) -> Path:
    """A base disk image."""
    every = (*guest_files(), *additions)
    key = cache.key_of(RECIPE, size, root.key("guest"), *[addition.identity() for addition in every])
    name = f"base-{size}-node" if additions else f"base-{size}"
    return cache.ensure("disks", name, key, lambda entry: make(entry, size, every)) / IMAGE


def make(entry: Path, size: str, additions: tuple[Addition, ...]) -> None:
    machine.say(f"making a guest disk of {size}")
    with cache.scratch("disk") as scratch:
        tree = scratch / "tree"
        # Hard links: a copy of the root in a blink. Nothing below may change a file in place.
        subprocess.run(["cp", "-al", str(root.ensure("guest")), str(tree)], check=True)
        for addition in additions:
            add(tree, addition)
        wanted = tree / "etc/systemd/system/multi-user.target.wants"
        wanted.mkdir(parents=True, exist_ok=True)
        (wanted / "nodens-guest.service").symlink_to("/usr/lib/systemd/system/nodens-guest.service")
        binds = (chroot.Bind(tree, Path("/run/tree")), chroot.Bind(entry, Path("/run/entry")))
        place = chroot.Chroot(root="testbed", cwd=Path("/"), binds=binds)
        with chroot.prepared(place) as inside:
            depmod = inside.capture(["depmod", "-b", "/run/tree", uml.modules().name])
            mkfs = inside.capture(["mkfs.ext4", "-q", "-F", "-L", "guest", "-d", "/run/tree",
                                   "-E", "assume_storage_prezeroed=1", f"/run/entry/{IMAGE}", size])
    if depmod.returncode or mkfs.returncode:
        raise Failure(f"cannot make a guest disk:\n{depmod.stderr}{mkfs.stdout}{mkfs.stderr}")


def add(tree: Path, addition: Addition) -> None:
    target = tree / addition.target
    target.parent.mkdir(parents=True, exist_ok=True)
    if addition.source.is_dir():
        # A copy, not links: depmod writes there.
        shutil.copytree(addition.source, target, symlinks=True, dirs_exist_ok=True)
        return
    target.unlink(missing_ok=True)
    shutil.copy2(addition.source, target)
    os.chown(target, 0, 0)


def size_in_mebibytes(text: str) -> int:
    """'512M' or '4G' as MiB."""
    units = {"M": 1, "G": 1024}
    if len(text) < 2 or text[-1] not in units or not text[:-1].isdigit():
        raise Failure(f"'{text}' is no size; write it like 512M or 4G")
    return int(text[:-1]) * units[text[-1]]
