# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/version-skew.md, from the results of `tools/dev test skew`.

The tests write the cells that were as expected to build/skew.json. `tools/dev skew-table` puts these results into
tests/cluster/skew/results.json and the tables into the page; `tools/dev lint tables` compares page and results.
"""
import argparse
import fcntl
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import page_tables
from .command import Command, Failure
from .project import BUILD, TESTS, TOP, commit

NEWEST = BUILD / "skew.json"
RESULTS = TESTS / "cluster/skew/results.json"
PAGE = TOP / "docs/version-skew.md"


@dataclass(frozen=True)
class Table:
    """One table of the page: what its rows are, and its columns."""

    rows: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    table: str
    row: str
    column: str
    outcome: str
    text: str = ""      # the message that a user reads


TABLES = {
    "pods": Table("kubelet", ("unset", "true", "false", "false, root, restricted", "false, host network", "the same, bound to the node",
                              "deleted")),
    "start": Table("kubelet", ("outcome",)),
    "switch": Table("kubelet before → after", ("running pod", "new pod", "deleted")),
    "deployment": Table("kubelet", ("running pods", "pods that replace them")),
    "gate": Table("API server and kubelet", ("running pod", "its update", "new pod")),
    "static": Table("API server and kubelet", ("static pod",)),
    "host network": Table("API server and kubelet 1.36", ("running pod", "its update", "new pod", "deleted")),
}


def keep(path: Path, cells: Sequence[Cell], node: Mapping[str, str] | None = None) -> None:
    """Writes new results and what the node was; cells that are not among them stay as an earlier run has measured them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:       # two runs, each on its own cluster, may end at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        keep_locked(path, cells, node or {})


def keep_locked(path: Path, cells: Sequence[Cell], node: Mapping[str, str]) -> None:
    before, facts = read(path) if path.is_file() else ([], {})
    new = {(cell.table, cell.row, cell.column): cell for cell in cells}
    old = {(cell.table, cell.row, cell.column): cell for cell in before}
    if set(old) - set(new):     # what differs is not true of all cells
        node = {name: value for name, value in node.items() if facts.get(name) == value}
    every = [cell for _, cell in sorted((old | new).items())]
    data: dict[str, Any] = {"commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime()), **node}
    path.write_text(json.dumps(data | {"cells": [asdict(cell) for cell in every]}, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> tuple[list[Cell], dict[str, Any]]:
    data = json.loads(path.read_text())
    return [Cell(**cell) for cell in data.pop("cells")], data


def problems_of(cells: Sequence[Cell]) -> list[str]:
    """Cells that are missing, twice there or unknown."""
    found = []
    seen = [(cell.table, cell.row, cell.column) for cell in cells]
    wanted = [(name, row, column) for name, table in TABLES.items() for row in rows_of(cells, name) for column in table.columns]
    found += [f"no result for {' / '.join(key)}" for key in wanted if key not in seen]
    found += [f"two results for {' / '.join(key)}" for key in sorted(set(seen)) if seen.count(key) > 1]
    found += [f"no table has the cell {' / '.join(key)}" for key in seen if key not in wanted]
    return found + [f"no result for the table '{name}'" for name in TABLES if not rows_of(cells, name)]


def rows_of(cells: Sequence[Cell], table: str) -> list[str]:
    return sorted({cell.row for cell in cells if cell.table == table})


def render(cells: Sequence[Cell], name: str) -> str:
    """A table in Markdown, with the messages below it, numbered."""
    table = TABLES[name]
    found = {(cell.row, cell.column): cell for cell in cells if cell.table == name}
    texts = list(dict.fromkeys(cell.text for cell in found.values() if cell.text))
    lines = [f"| {table.rows} | {' | '.join(table.columns)} |", "|---" * (len(table.columns) + 1) + "|"]
    for row in rows_of(cells, name):
        shown = [with_note(found[row, column], texts) for column in table.columns]
        lines.append(f"| {row} | {' | '.join(shown)} |")
    notes = [f"{number}. {as_code(text)}" for number, text in enumerate(texts, 1)]
    return "\n".join([*lines, *(["", "Messages:", "", *notes] if notes else [])]) + "\n"


def as_code(text: str) -> str:
    return f"``{text} ``" if "`" in text else f"`{text}`"


def with_note(cell: Cell, texts: list[str]) -> str:
    return cell.outcome + (f" ({texts.index(cell.text) + 1})" if cell.text else "")


def page_from(page: str, cells: Sequence[Cell], facts: dict[str, Any]) -> str:
    """The page with its tables replaced."""
    tables = {name: render(cells, name) for name in TABLES}
    return page_tables.replaced(page, PAGE.name, tables, facts, f"{len(cells)} cells")


def problems() -> list[str]:
    """What is wrong with the page and the results that are committed."""
    cells, facts = read(RESULTS)
    return problems_of(cells) + page_tables.stale(PAGE, page_from(PAGE.read_text(), cells, facts), RESULTS, "skew-table")


def options(parser: argparse.ArgumentParser) -> None:
    page_tables.add_committed(parser, RESULTS)


def run(args: argparse.Namespace) -> int:
    source = page_tables.source(args, RESULTS, NEWEST, "`tools/dev test skew` writes them when all its tests pass")
    cells, facts = read(source)
    if wrong := problems_of(cells):
        raise Failure("\n".join(wrong))
    if not args.committed:
        RESULTS.write_text(source.read_text())
    PAGE.write_text(page_from(PAGE.read_text(), cells, facts))
    print(f"{PAGE.relative_to(TOP)}: {len(cells)} cells")
    return 0


COMMANDS = [Command("skew-table", "write the newest results of `tools/dev test skew` to docs/version-skew.md", run, options)]
