# SPDX-License-Identifier: Apache-2.0
"""The table of commands, and the way from the command line to one of them."""
import argparse
import importlib
import os
import signal
import sys
from collections.abc import Callable

from . import ownership
from .command import Command, Failure, unknown
from .project import TOP

# Where commands live, in the order in which `tools/dev help` shows them.
MODULES = (
    "build", "checks.tests", "checks.fuzz", "checks.lint", "checks.prove", "checks.ci", "checks.nightly",
    "env.vm", "cluster", "e2e", "bench", "skew", "critools", "storage", "compatibility", "package", "deploy",
    "shell", "env.deps", "env.goprograms", "images", "registry", "env.root", "env.cache", "doctor",
)


def commands() -> dict[str, Command]:
    """Every command by name."""
    found: dict[str, Command] = {}
    for name in MODULES:
        for command in getattr(importlib.import_module(f"nodensdev.{name}"), "COMMANDS", ()):
            found[command.name] = command
    return found


def show_help(table: dict[str, Command]) -> int:
    width = max(len(name) for name in table)
    print("usage: tools/dev COMMAND [ARGUMENTS]   (tools/dev COMMAND --help: its options)\n")
    for command in table.values():
        print(f"  {command.name:<{width}}  {command.summary}")
    return 0


def run_command(command: Command, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog=f"tools/dev {command.name}", description=command.summary)
    command.options(parser)
    if command.rest and arguments[:1] not in (["--help"], ["-h"]):
        return command.run(argparse.Namespace(rest=arguments))
    return command.run(parser.parse_args(arguments))


def quietly(run: Callable[[], int]) -> int:
    """Runs it; a reader that has closed the pipe, as `head` does, gets no traceback."""
    try:
        code = run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())      # what is still buffered has nowhere to go
        return 141


def end_politely(signum: int, frame: object) -> None:
    """Turns a signal into an exception, so that the command cleans up."""
    raise SystemExit(128 + signum)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell would have us ignore it
    signal.signal(signal.SIGTERM, end_politely)
    signal.signal(signal.SIGHUP, end_politely)
    table = commands()
    if not arguments or arguments[0] in ("help", "--help", "-h"):
        return quietly(lambda: show_help(table))
    command = table.get(arguments[0])
    if command is None:
        print(f"tools/dev: {unknown('command', arguments[0], table)}; `tools/dev help` lists them", file=sys.stderr)
        return 2
    try:
        return quietly(lambda: run_command(command, arguments[1:]))
    except Failure as failure:
        print(f"tools/dev {command.name}: {failure}", file=sys.stderr)
        return 1
    except PermissionError as error:
        if os.geteuid() == 0:
            raise
        print(f"tools/dev {command.name}: {error}; run it as root: sudo tools/dev {command.name}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        ownership.give_back(TOP)
