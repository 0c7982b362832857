# SPDX-License-Identifier: Apache-2.0
"""What a command is, and how it says that it cannot go on."""
import argparse
import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass


class Failure(Exception):
    """Ends the command with a message for the person who typed it: what, where, what to do."""


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """For a word that is not in a table: the nearest ones, which are few where the table is long."""
    near = difflib.get_close_matches(word, list(known), 3)
    return f"no {kind} '{word}'" + (f"; near: {', '.join(near)}" if near else "")


def one_of(kind: str, known: Iterable[str]) -> Callable[[str], str]:
    """The type of an argument that is a word of a table."""
    names = list(known)

    def check(word: str) -> str:
        if word not in names:
            raise argparse.ArgumentTypeError(f"{unknown(kind, word, names)}; --help lists them")
        return word
    return check


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
