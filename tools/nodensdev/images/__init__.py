# SPDX-License-Identifier: Apache-2.0
"""Container images, made here.

For tests: upstream's (`e2e`), the project's own (`own`), engines that run in a container (`podman`, `engines`, `buildkit`), a rootless
node that does (`node`), and a network of such nodes (`flannel`). For clusters: nodens-guard (`guard`).

    archive = images.archive("e2e")     # an OCI archive for `ctr images import`
    layout = images.layout("own")       # the same, unpacked, for pushing

A set is one OCI layout, in which images share their layers, kept in the cache by a hash of what it is made from.
"""
import argparse
from pathlib import Path
from types import ModuleType

from ..command import Command, Failure
from ..env import cache, machine
from . import buildkit, debian, engines, flannel, guard, layer, node, own, podman, upstream
from . import layout as layout_module
from .layout import Layout

SETS: dict[str, ModuleType] = {"e2e": upstream, "own": own, "podman": podman, "engines": engines, "buildkit": buildkit,
                               "flannel": flannel, "node": node, "guard": guard}
SERVED = ("e2e", "own")    # by a registry by default: what tests of pulls need


def ensure(name: str) -> Path:
    """The cache's directory of a set: `layout/` and `archive.tar`."""
    if name not in SETS:
        raise Failure(f"no set of images '{name}' (there are: {', '.join(SETS)})")
    return cache.ensure("images", name, key(name), lambda path: make(name, path))


def key(name: str) -> str:
    modules = (debian, layer, layout_module, SETS[name])
    code = [Path(str(module.__file__)).read_text() for module in modules]
    return cache.key_of(*code, *SETS[name].inputs())


def make(name: str, path: Path) -> None:
    machine.say(f"making the '{name}' images (about a minute)")
    layout = Layout.create(path / "layout")
    with cache.scratch("images") as work:
        SETS[name].fill(layout, work)
    layout.close()
    layout.write_archive(path / "archive.tar")


def layout(name: str) -> Layout:
    return Layout.open(ensure(name) / "layout")


def archive(name: str) -> Path:
    return ensure(name) / "archive.tar"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", nargs="*", help=f"which sets; default: all ({', '.join(SETS)})")


def run(args: argparse.Namespace) -> int:
    for name in args.set or SETS:
        print(f"{name}: {archive(name)}")
        for image in sorted(layout(name).images):
            print(f"  {image}")
    return 0


COMMANDS = [Command("images", "make the container images of the tests and of nodens-guard, and say where they are", run, options)]
