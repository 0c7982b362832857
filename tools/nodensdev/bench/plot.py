# SPDX-License-Identifier: Apache-2.0
"""A bar chart as SVG, drawn by hand: the steps of a pod's start and end, stacked, a bar per subject."""
from html import escape
from typing import Any

from . import figures
from .guest.subjects import START

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 860, 190, 90, 26, 12, 56
COLOURS = ("#27506b", "#4d8fac", "#9cc5d3", "#8a5a2b", "#c08a4e", "#dfb98a", "#efdcc3")


def bars(data: dict[str, Any]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Label, and the parts of the bar."""
    found = []
    for mode in figures.modes_of(data):
        rows = {row.title: row for row in figures.rows_of(data, mode)}
        for subject in figures.subjects_of(data):
            title = "bare engine" if subject == figures.ENGINE else subject
            label = f"{title}, {'user namespace' if mode == 'on' else 'host users'}"
            found.append((label, [(step, rows[step].values[subject]) for step in (*START, *figures.END)]))
    return found


def text(x: float, y: float, content: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}">{escape(content)}</text>'


def legend(steps: list[str]) -> list[str]:
    found, x = [], 10.0
    for step, colour in zip(steps, COLOURS, strict=False):
        found.append(f'<rect x="{x:.0f}" y="30" width="10" height="10" fill="{colour}"/>')
        found.append(text(x + 14, 39, step, size=11))
        x += 24 + len(step) * 6.3
    return found


def bar(y: float, label: str, parts: list[tuple[str, float]], scale: float) -> list[str]:
    found, x = [text(LEFT - 8, y + BAR * 0.68, label, "end")], float(LEFT)
    for (step, value), colour in zip(parts, COLOURS, strict=False):
        found.append(f'<rect x="{x:.1f}" y="{y}" width="{value * scale:.1f}" height="{BAR}" fill="{colour}">'
                     f"<title>{escape(step)}: {value:.1f} ms</title></rect>")
        x += value * scale
    found.append(text(x + 6, y + BAR * 0.68, f"{sum(value for _, value in parts):.0f} ms"))
    return found


def draw(data: dict[str, Any]) -> str:
    lines = bars(data)
    scale = (WIDTH - LEFT - RIGHT) / max(sum(value for _, value in parts) for _, parts in lines)
    height = TOP + len(lines) * (BAR + GAP) + 10
    title = f"A pod's start and end, medians of {data['rounds'] * data['pods']} pods, {data['date']}, commit {data['commit']}"
    body = [text(10, 18, title, size=13)]
    body += legend([step for step, _ in lines[0][1]])
    for number, (label, parts) in enumerate(lines):
        body += bar(TOP + number * (BAR + GAP), label, parts, scale)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
            f'font-family="sans-serif" fill="#222"><rect width="{WIDTH}" height="{height}" fill="#fff"/>'
            + "\n".join(body) + "</svg>\n")
