# SPDX-License-Identifier: Apache-2.0
"""The figures as tables, for the terminal and for Markdown."""
import statistics
from typing import Any

from . import figures
from .figures import ENGINE, Row

TITLES = {"on": "pods with a user namespace", "off": "pods with the host's users"}


def number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "" or value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if unit == "MB" and value < 1 else f"{value:.1f}"


def cells(row: Row, subjects: list[str]) -> list[str]:
    found = [f"{row.title}{f' ({row.unit})' if row.unit else ''}"]
    for subject in subjects:
        found.append(number(row.values.get(subject), row.unit))
        if subject != ENGINE:
            ratio = row.ratio(subject)
            found.append(f"{ratio:.2f}" if ratio is not None else "-")
    return found


def heading(subjects: list[str]) -> list[str]:
    found = [""]
    for subject in subjects:
        found += ["bare engine"] if subject == ENGINE else [subject, "x engine"]
    return found


def cost_lines(data: dict[str, Any]) -> list[list[str]]:
    lines = [["a pod's start", "with (ms)", "without (ms)", "ratio"]]
    for subject, ratio in figures.userns_cost(data).items():
        pair = data["results"]["pair"][subject]
        lines.append(["bare engine" if subject == ENGINE else subject,
                      *(number(statistics.median(pair[mode]), "ms") for mode in ("on", "off")), f"{ratio:.2f}"])
    return lines


def tables(data: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
    """Title and lines of each table; the first line is its heading."""
    subjects = figures.subjects_of(data)
    found = [(TITLES[mode], [heading(subjects), *(cells(row, subjects) for row in figures.rows_of(data, mode))])
             for mode in figures.modes_of(data)]
    if "pair" in data["results"]:
        found.append(("what a user namespace costs", cost_lines(data)))
    return [*found, ("images", [heading(subjects), cells(figures.pull_row(data), subjects)])]


def as_text(data: dict[str, Any]) -> str:
    lines = []
    for title, table in tables(data):
        widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
        lines.append(f"\n{title}")
        for first, *rest in table:
            lines.append("  " + first.ljust(widths[0])
                         + "".join("  " + cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=False)))
    return "\n".join(lines)


def as_markdown(table: list[list[str]]) -> str:
    lines = ["| " + " | ".join(line) + " |" for line in table]
    return "\n".join([lines[0], "|---" + "|---:" * (len(table[0]) - 1) + "|", *lines[1:]])
