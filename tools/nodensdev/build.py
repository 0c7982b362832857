# SPDX-License-Identifier: Apache-2.0
"""Builds of the tree, one directory under build/ per variant."""
import argparse
import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .command import Command, Failure
from .env import chroot, deps
from .project import BUILD, TOP


@dataclass(frozen=True)
class Variant:
    """How meson is called for one kind of build."""

    purpose: str
    compiler: str
    options: tuple[str, ...]
    targets: tuple[str, ...] = ()  # what to build; all by default


SANITIZERS = ("-Db_sanitize=address,undefined", "-Db_lundef=false")
# gcc 14 does not follow cleanup attributes, nor dup2() to a number that is meant to stay: its
# warnings of descriptors are noise.
ANALYZER = "-fanalyzer -Wno-analyzer-fd-leak -Wno-analyzer-fd-double-close -Wno-analyzer-fd-use-without-check"
VARIANTS = {
    "gcc": Variant("the everyday build", "gcc", ("--buildtype=debugoptimized",)),
    "clang": Variant("the second compiler's opinion, with the options that are off by default; clang-tidy reads its compile commands",
                     "clang",
                     ("--buildtype=debugoptimized", "-Dselinux=true")),
    "asan": Variant("AddressSanitizer and UndefinedBehaviorSanitizer", "clang", ("--buildtype=debug", *SANITIZERS)),
    "fuzz": Variant("the fuzzers, with both sanitizers", "clang",
                    ("--buildtype=debugoptimized", *SANITIZERS, "-Dfuzzers=true")),
    "release": Variant("what a distribution would ship, hardened", "gcc", ("--buildtype=release",)),
    "analyzer": Variant("gcc -fanalyzer, of what ships", "gcc", ("--buildtype=debugoptimized", f"-Dc_args={ANALYZER}"),
                        ("nodens", "nodens-bridge", "nodens-cri", "nodens-fetch", "nodens-guard", "nodens-mon", "nodens-rootless",
                         "nodens-unpack")),
}


def setup_options(variant: Variant) -> list[str]:
    found = ["--werror", *variant.options]
    declared = TOP / "meson.options"
    if declared.is_file() and "cri_proto" in declared.read_text():
        found.append(f"-Dcri_proto={chroot.seen_inside(deps.ensure())}")
    return found


def configure(inside: chroot.Prepared, name: str, options: list[str]) -> None:
    """Sets the directory up, again from scratch when it was set up otherwise."""
    directory = BUILD / name
    stamp = BUILD / f"{name}.setup"
    wanted = json.dumps([str(inside.root), VARIANTS[name].compiler, options])
    if (directory / "build.ninja").is_file() and stamp.is_file() and stamp.read_text() == wanted:
        return
    directory.mkdir(parents=True, exist_ok=True)
    wipe = ["--wipe"] if (directory / "meson-private").is_dir() else []
    command = ["env", f"CC=ccache {VARIANTS[name].compiler}", "meson", "setup", *wipe, *options, f"build/{name}"]
    if inside.run(command) != 0:
        raise Failure(f"meson setup failed for build/{name}; its log is build/{name}/meson-logs/meson-log.txt")
    stamp.write_text(wanted)


def ensure(inside: chroot.Prepared, name: str) -> Path:
    """Builds a variant, in a chroot, and returns its directory."""
    with alone_in(name):
        configure(inside, name, setup_options(VARIANTS[name]))
        if inside.run(["meson", "compile", "-C", f"build/{name}", *VARIANTS[name].targets]) != 0:
            raise Failure(f"the {name} build failed")
    return BUILD / name


@contextlib.contextmanager
def alone_in(name: str) -> Iterator[None]:
    """Two commands at once must not build in one directory."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def options(parser: argparse.ArgumentParser) -> None:
    text = "; ".join(f"{name}: {variant.purpose}" for name, variant in VARIANTS.items())
    parser.add_argument("--variant", choices=[*VARIANTS, "all"], default="gcc", help=text)


def programs(directory: Path) -> list[Path]:
    """The programs of a build that ship."""
    return [path for name in VARIANTS["analyzer"].targets for path in sorted((directory / "src").rglob(name)) if path.is_file()]


def where(directory: Path) -> str:
    """Where the programs are and how to run one, for a person."""
    found = [path.relative_to(TOP) for path in programs(directory)]
    if not found:
        return f"built: {directory.relative_to(TOP)}"
    lines = [f"built: {', '.join(str(path) for path in found)}"]
    command = found[0] if found[0].name == "nodens" else None
    return "\n".join([*lines, *([f"try: tools/dev shell -- {command} check"] if command else [])])


def run(args: argparse.Namespace) -> int:
    with chroot.prepared(chroot.Chroot()) as inside:
        for name in VARIANTS if args.variant == "all" else [args.variant]:
            print(where(ensure(inside, name)), flush=True)
    return 0


COMMANDS = [Command("build", "build the tree (meson, in the Debian 13 root)", run, options)]
