# SPDX-License-Identifier: Apache-2.0
"""What a command is, and how it says that it cannot go on."""
import argparse
from collections.abc import Callable
from dataclasses import dataclass


class Failure(Exception):
    """Ends the command with a message for the person who typed it: what, where, what to do."""


def no_options(parser: argparse.ArgumentParser) -> None:
    """For commands that take nothing."""


@dataclass(frozen=True)
class Command:
    """One word after `tools/dev`.

    `options` adds arguments to the command's own parser; `run` gets the parsed arguments and returns the exit code.
    A command with `rest` hands everything after its name to `run` unparsed, as `args.rest`.
    """

    name: str
    summary: str
    run: Callable[[argparse.Namespace], int]
    options: Callable[[argparse.ArgumentParser], None] = no_options
    rest: bool = False
