# SPDX-License-Identifier: Apache-2.0
"""Chroots: a Debian root with the tree, the cache and scratch space in it, in which a command is run.

    with chroot.prepared(chroot.Chroot()) as inside:
        inside.run(["meson", "compile", "-C", "build/gcc"])

The tree is at /nodens (writable), the cache at /cache (read-only), ext4 scratch space at /var/tmp and
/var/lib/nodens-test; /tmp, /run and /root are empty and in memory; everything else is the root, read-only.
The network is the machine's, unless a network namespace is given. enter_chroot.py enters it, by
pivot_root: user namespaces cannot be made after chroot(2).
"""
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..project import INSIDE, TOP
from . import cache, machine, root

CACHE_INSIDE = Path("/cache")
# Caches that programs inside keep from one command to the next: the only directories of the cache
# that a chroot can write.
MEMORIES = {name: Path("/root/.cache") / name for name in ("ccache", "tidy")}
KEPT_VARIABLES = ("TERM", "CI", "COLORTERM", "NO_COLOR", "SOURCE_DATE_EPOCH", "NINJA_STATUS", "CFLAGS", "LDFLAGS",
                  "NODENS_MARK")  # the last one: by it the testbed's tests know the processes they have caused
PYTHONPATH = f"{INSIDE}/tools:{INSIDE}/tests/lib"   # for programs; pytest has it from pyproject.toml
ENTER = Path(__file__).with_name("enter_chroot.py")


def seen_inside(path: Path) -> Path:
    """Something in the cache, as it is called in a chroot."""
    return CACHE_INSIDE / path.relative_to(cache.top())


@dataclass(frozen=True)
class Bind:
    """A directory or file of the machine that is seen inside."""

    source: Path
    target: Path
    read_only: bool = False


@dataclass(frozen=True)
class Chroot:
    """What a command will find around it."""

    root: str = "build"
    binds: tuple[Bind, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: Path = INSIDE
    netns: Path | None = None       # join this network namespace
    new_netns: bool = False         # or get an empty one
    holds: tuple[Path, ...] = ()    # cache entries, besides the root, that must not be pruned while it is open


@dataclass(frozen=True)
class Prepared:
    """A chroot whose root and scratch space are there."""

    chroot: Chroot
    root: Path
    scratch: Path

    def command(self, argv: list[str], die_with_parent: bool = True) -> list[str]:
        """The machine's command line that runs `argv` inside; to be started by this very process."""
        plan = {
            "root": str(self.root), "read_only": True, "cwd": str(self.chroot.cwd), "env": self.environment(),
            "binds": [(str(bind.source), str(bind.target), bind.read_only) for bind in self.binds()],
            "netns": str(self.chroot.netns) if self.chroot.netns else None, "new_netns": self.chroot.new_netns,
            "die_with_parent": die_with_parent, "parent": os.getpid(),
            "locks": [str(cache.lock_path(entry)) for entry in (self.root, *self.chroot.holds)],
        }
        return [sys.executable, "-I", "-B", str(ENTER), json.dumps(plan), "--", *argv]

    def run(self, argv: list[str], quiet: bool = False) -> int:
        """Runs a command inside to its end and returns its exit code. What it started is gone afterwards."""
        with subprocess.Popen(self.command(argv), stdout=subprocess.DEVNULL if quiet else None) as process:
            try:
                return process.wait()
            except BaseException:
                process.terminate()
                raise

    def capture(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        """Runs a command inside and returns its output."""
        return subprocess.run(self.command(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def binds(self) -> list[Bind]:
        own = [
            Bind(TOP, INSIDE), Bind(cache.top(), CACHE_INSIDE, read_only=True),
            *(Bind(cache.directory(name), target) for name, target in MEMORIES.items()),
            Bind(self.scratch / "tmp", Path("/var/tmp")), Bind(self.scratch / "lib", Path("/var/lib/nodens-test")),
        ]
        names = [Bind(path, path, read_only=True) for path in (Path("/etc/resolv.conf"), Path("/etc/hosts")) if path.exists()]
        return own + [bind for bind in names if (self.root / str(bind.target).lstrip("/")).exists()] + list(self.chroot.binds)

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        kept |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        fixed = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                 "CCACHE_MAXSIZE": "3G", "PYTHONPATH": PYTHONPATH}
        return kept | fixed | self.chroot.env


@contextlib.contextmanager
def prepared(chroot: Chroot) -> Iterator[Prepared]:
    """Makes what the chroot needs, and takes the scratch space away at the end."""
    machine.need_root("entering the Debian root")
    path = root.ensure(chroot.root)
    with cache.scratch("chroot") as scratch:
        yield furnished(chroot, path, scratch)


def furnished(chroot: Chroot, root_path: Path, scratch: Path) -> Prepared:
    """A chroot with a given directory as its scratch space."""
    (scratch / "tmp").mkdir()
    (scratch / "tmp").chmod(0o1777)
    (scratch / "lib").mkdir()
    scratch.chmod(0o711)
    return Prepared(chroot, root_path, scratch)


def run(argv: list[str], chroot: Chroot = Chroot()) -> int:
    """Runs one command in a chroot."""
    with prepared(chroot) as inside:
        return inside.run(argv)
