# SPDX-License-Identifier: Apache-2.0
"""A real registry (the distribution project's) with the test images, on loopback or in a network namespace.

`tools/dev registry up` leaves it running in the background for a person; `serving()` runs one for the length of a test;
the cluster runs the commands of a `Site` itself, among its own processes.
"""
import argparse
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from .. import images
from ..command import Command, Failure
from ..env import cache
from . import storage
from .processes import end, start
from .site import AUTHS, HOST, PASSWORD, PORT, USER, Site, hosts_toml, load

__all__ = ["COMMANDS", "HOST", "PASSWORD", "PORT", "USER", "Site", "end", "hosts_toml", "load", "serving", "start", "storage"]


@contextlib.contextmanager
def serving(netns: Path | None = None, address: str = "127.0.0.1", port: int = PORT, auth: str = "none",
            sets: tuple[str, ...] = ("own",)) -> Iterator[Site]:
    """A registry with these sets of images, gone at the end."""
    with cache.scratch("registry") as directory:
        site = Site(directory, address, port, auth)
        site.prepare(storage.filled(sets))
        processes = start(site, netns)
        try:
            site.wait(netns)
            yield site
        finally:
            end(processes)


def home() -> Path:
    """Where the registry of `tools/dev registry up` lives."""
    return cache.directory("registry")


def identity(pid: int) -> str:
    """A process's number with its start time: it names no other process later."""
    try:
        return f"{pid} {Path(f'/proc/{pid}/stat').read_text().rsplit(') ', 1)[1].split()[19]}"
    except FileNotFoundError:
        return f"{pid} gone"


def running() -> list[int]:
    record = home() / "processes"
    lines = record.read_text().splitlines() if record.exists() else []
    return [int(line.split()[0]) for line in lines if identity(int(line.split()[0])) == line]


def up(args: argparse.Namespace) -> int:
    if running():
        raise Failure("the registry is up already; `tools/dev registry down` ends it")
    shutil.rmtree(home() / "site", ignore_errors=True)
    site = Site(home() / "site", args.address, args.port, args.auth)
    sets = tuple(args.set or images.SETS)
    site.prepare(storage.filled(sets))
    processes = start(site, args.netns)
    (home() / "processes").write_text("".join(f"{identity(process.pid)}\n" for process in processes))
    try:
        site.wait(args.netns)
    except BaseException:
        end(processes)
        raise
    print(f"https://{args.address}:{args.port} ({HOST}), auth {args.auth}, images {' '.join(sets)}; "
          f"authority {site.authority}")
    return 0


def down(args: argparse.Namespace) -> int:
    ending = running()
    for pid in ending:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while running() and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in running():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(home() / "site", ignore_errors=True)
    print(f"ended {len(ending)} processes" if ending else "the registry was not up")
    return 0


def push(args: argparse.Namespace) -> int:
    for name in load(home() / "site").push(tuple(args.set or images.SETS), args.netns):
        print(name)
    return 0


def fill(args: argparse.Namespace) -> int:
    print(storage.filled(tuple(args.set)) if args.set else storage.filled())
    return 0


ACTIONS = {"up": up, "down": down, "push": push, "fill": fill}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("--auth", choices=AUTHS, default="none", help=f"user {USER}, password {PASSWORD}")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=PORT, help="the token server takes the next one")
    parser.add_argument("--netns", type=Path, help="path of a network namespace to serve in")
    parser.add_argument("--set", action="append", choices=list(images.SETS), help="which images; default: all")


def run(args: argparse.Namespace) -> int:
    return ACTIONS[args.action](args)


COMMANDS = [Command("registry", "a real registry with the test images: up, down, push; fill only makes its storage", run, options)]
