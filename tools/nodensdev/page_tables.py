# SPDX-License-Identifier: Apache-2.0
"""Tables of pages that come from results in the tree: where they are in a page, and the line that says which results they show."""
import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .command import Failure
from .project import TOP

BEGIN, END = "<!-- table: {name} -->\n", "<!-- end of table -->\n"


def replaced(page: str, title: str, tables: Mapping[str, str], facts: Mapping[str, Any], more: str) -> str:
    """The page with its tables and the line about their results replaced; `title` is for messages, `more` ends the line."""
    for name, text in tables.items():
        begin = BEGIN.format(name=name)
        if page.count(begin) != 1 or END not in page.split(begin)[1]:
            raise Failure(f"{title} has no place for the table '{name}': {begin.strip()} ... {END.strip()}")
        head, rest = page.split(begin)
        page = head + begin + "\n" + text + "\n" + END + rest.split(END, 1)[1]
    line = f"Results of {facts['date']} (last run: commit {facts['commit']}), {more}."
    return re.sub(r"^Results of \d{4}-.*$", line, page, flags=re.MULTILINE)


def stale(page: Path, wanted: str, results: Path, command: str) -> list[str]:
    """Says so if a page is not what its results give."""
    text = f"{page.relative_to(TOP)} is not what {results.relative_to(TOP)} gives: `tools/dev {command} --committed` writes it"
    return [text] if page.read_text() != wanted else []


def add_committed(parser: argparse.ArgumentParser, results: Path) -> None:
    parser.add_argument("--committed", action="store_true", help=f"from {results.relative_to(TOP)}, not from a new run")


def source(args: argparse.Namespace, results: Path, newest: Path, writer: str) -> Path:
    """The results that a command reads: those of the tree, or those of a new run."""
    found = results if args.committed else newest
    if not found.is_file():
        raise Failure(f"no results in {found.relative_to(TOP)}; {writer}")
    return found
