# SPDX-License-Identifier: Apache-2.0
"""A prompt, or any command, inside a root."""
import argparse

from .command import Command
from .env import chroot


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", default="build", help="which root of tools/roots (default: build)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run (default: an interactive bash)")


def run(args: argparse.Namespace) -> int:
    argv = args.command[1:] if args.command[:1] == ["--"] else args.command
    return chroot.run(argv or ["bash", "-i"], chroot.Chroot(root=args.root))


COMMANDS = [Command("shell", "a prompt (or a command) inside the Debian 13 root", run, options)]
