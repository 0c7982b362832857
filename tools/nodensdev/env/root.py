# SPDX-License-Identifier: Apache-2.0
"""Debian 13 roots, made by mmdebstrap from the package lists in tools/roots.

A list names one package per line, each with its reason after a `#`; `@include OTHER` takes over another list.
An executable NAME.hook beside NAME.list gets the finished root's directory and may change it.
"""
import argparse
import os
import subprocess
from pathlib import Path

from ..command import Command, Failure
from ..project import TOOLS
from . import cache, machine

SUITE = "trixie"
LISTS = TOOLS / "roots"
RECIPE = "1"  # goes up when the way a root is made changes

# Mount points for a chroot (see chroot.py) that Debian does not have, and places that must not be
# missing.
MOUNT_POINTS = ("nodens", "cache", "var/lib/nodens-test")
# Documentation in languages and formats that are not read here is half of a root's files.
DPKG_OPTIONS = (
    "force-unsafe-io", "path-exclude=/usr/share/locale/*", "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright", "path-exclude=/usr/share/info/*",
)


def packages(name: str) -> list[str]:
    """The packages of a list, sorted."""
    path = LISTS / f"{name}.list"
    if not path.is_file():
        raise Failure(f"no root '{name}': {path} is not there")
    found: set[str] = set()
    for line in path.read_text().splitlines():
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0] == "@include":
            found.update(packages(words[1]))
        else:
            found.update(words)
    return sorted(found)


def names() -> list[str]:
    return sorted(path.stem for path in LISTS.glob("*.list"))


def hook(name: str) -> Path | None:
    path = LISTS / f"{name}.hook"
    return path if path.is_file() else None


def key(name: str) -> str:
    script = hook(name)
    return cache.key_of(RECIPE, SUITE, *DPKG_OPTIONS, *MOUNT_POINTS, *packages(name), script.read_bytes() if script else b"")


def ensure(name: str) -> Path:
    """The directory of a root; made when its list is new."""
    return cache.ensure("roots", name, key(name), lambda path: make(name, path))


def make(name: str, path: Path) -> None:
    machine.need_root("making a Debian root")
    machine.need_program("mmdebstrap", "mmdebstrap")
    wanted = packages(name)
    machine.say(f"making the '{name}' root: {SUITE} with {len(wanted)} packages (one or two minutes)")
    command = ["mmdebstrap", "--mode=root", "--format=directory", "--variant=apt", f"--include={','.join(wanted)}"]
    command += [f"--aptopt={option}" for option in machine.apt_options()]
    command += [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
    command += [f"--customize-hook=mkdir -p \"$1/{point}\"" for point in MOUNT_POINTS]
    script = hook(name)
    command += [f"--customize-hook={script}"] if script else []
    command += [SUITE, str(path)]
    done = subprocess.run([*command, "-"], input="\n".join(machine.debian_sources(SUITE)), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=quiet_environment())
    if done.returncode != 0:
        raise Failure(f"mmdebstrap failed for the '{name}' root; the end of its output:\n{done.stdout[-4000:]}")


def quiet_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    return kept | {"PATH": machine.program_path(), "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="*", help=f"which roots; default: build (there are: {', '.join(names())})")


def run(args: argparse.Namespace) -> int:
    for name in args.name or ["build"]:
        print(f"{name}: {ensure(name)}")
    return 0


COMMANDS = [Command("root", "make Debian 13 roots and say where they are", run, options)]
