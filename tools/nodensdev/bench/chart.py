# SPDX-License-Identifier: Apache-2.0
"""Bar charts as SVG, written directly: rows of bars with shared labels, in columns that have an axis each.

Colours follow the reader's light or dark mode. The title and the description, which has all figures, are for screen readers."""
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

MARGIN, BAR, GAP, GROUP, COLUMN_GAP = 16, 18, 7, 24, 34
HEAD, COLUMN_HEAD, AXIS = 52, 40, 26
GLYPH = 0.6         # width of a character by the font's size, rather too wide than too narrow
STYLE = """text { fill: #1f2a33 }
.soft { fill: #56616a }
.ground { fill: #ffffff }
.value { stroke: #ffffff; stroke-width: 4; paint-order: stroke }
.grid { stroke: #dfe4e8 }
.base { fill: #98a3ab }
.other { fill: #c98a3c }
.ours { fill: #1f6f9f }
.other2 { fill: #e6c28f }
.ours2 { fill: #86bcdb }
@media (prefers-color-scheme: dark) {
text { fill: #e3e8ec }
.soft { fill: #a3afb8 }
.ground { fill: #0d1117 }
.value { stroke: #0d1117 }
.grid { stroke: #2c353d }
.base { fill: #737f88 }
.other { fill: #d79a4c }
.ours { fill: #4ea3d8 }
.other2 { fill: #8a6231 }
.ours2 { fill: #23597c }
}
"""


@dataclass(frozen=True)
class Value:
    """One bar: a number as the page has it, and perhaps the part of it that is drawn in the first of two colours."""

    text: str
    part: float | None = None
    mark: str = ""      # of a footnote

    @property
    def number(self) -> float:
        return float(self.text.replace(",", ""))


@dataclass(frozen=True)
class Column:
    title: str
    unit: str
    better: str                     # "shorter" or "longer"
    values: dict[str, Value]        # by row; a row without a value has no bar


@dataclass(frozen=True)
class Row:
    key: str
    label: str
    colour: str                     # ours, other or base
    group: str = ""                 # heading above the first row of a group


@dataclass(frozen=True)
class Chart:
    title: str
    about: str                      # a line below the title
    rows: list[Row]
    columns: list[Column]
    width: int = 860
    notes: list[str] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)     # colour and text


def text_width(content: str, size: float) -> float:
    return len(content) * size * GLYPH


def text(x: float, y: float, content: str, size: int = 12, anchor: str = "start", style: str = "", weight: str = "") -> str:
    more = (f' class="{style}"' if style else "") + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{more}>{escape(content)}</text>'


def ticks(most: float) -> list[float]:
    """Round numbers from 0 to at most the greatest value: three to six of them."""
    step = 10.0 ** math.floor(math.log10(most / 3))
    step *= next(factor for factor in (1, 2, 5, 10) if most / (step * factor) < 5)
    return [step * number for number in range(int(most / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:g}"


def positions(chart: Chart) -> tuple[dict[str, float], float, list[tuple[float, str]]]:
    """Where rows are, where they end, and the headings of groups."""
    y, found, headings = float(HEAD + COLUMN_HEAD), {}, []
    for row in chart.rows:
        if row.group:
            headings.append((y + 14, row.group))
            y += GROUP
        found[row.key] = y
        y += BAR + GAP
    return found, y, headings


def bar(x: float, y: float, scale: float, row: Row, column: Column, value: Value) -> list[str]:
    width = value.number * scale
    first = width if value.part is None else value.part * scale
    found = [f"<g><title>{escape(row.label)}: {escape(value.text)} {escape(column.unit)}</title>"]
    if value.part is not None:
        found.append(f'<rect x="{x + first:.1f}" y="{y:.1f}" width="{width - first:.1f}" height="{BAR}" class="{row.colour}2"/>')
    if value.part != 0:
        found.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(first, 1):.1f}" height="{BAR}" class="{row.colour}"/>')
    found.append(text(x + max(width, 1) + 5, y + BAR * 0.72, value.text + value.mark, style="value"))
    return [*found, "</g>"]


def column(chart: Chart, drawn: Column, x: float, width: float) -> list[str]:
    where, end, _ = positions(chart)
    reserve = max(text_width(value.text + value.mark, 12) for value in drawn.values.values()) + 8
    most = max(value.number for value in drawn.values.values())
    scale = (width - reserve) / most
    found = [text(x, HEAD + 12, drawn.title, 12, weight="bold"),
             text(x, HEAD + 28, f"{drawn.unit}; {drawn.better} is better", 11, style="soft")]
    for tick in ticks(most):
        at = x + tick * scale
        found.append(f'<line x1="{at:.1f}" y1="{HEAD + COLUMN_HEAD - 4}" x2="{at:.1f}" y2="{end:.1f}" class="grid"/>')
        found.append(text(at, end + 13, tick_text(tick), 10, "middle", "soft"))
    for row in chart.rows:
        if row.key in drawn.values:
            found += bar(x, where[row.key], scale, row, drawn, drawn.values[row.key])
    return found


def legend(entries: list[tuple[str, str]], y: float) -> list[str]:
    found, x = [], float(MARGIN)
    for colour, content in entries:
        found.append(f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" class="{colour}"/>')
        found.append(text(x + 15, y, content, 11))
        x += 15 + text_width(content, 11) + 18
    return found


def description(chart: Chart) -> str:
    """All figures in words."""
    def sentences() -> Iterable[str]:
        for drawn in chart.columns:
            group, said = "", []
            for row in chart.rows:
                group = row.group or group
                if row.key in drawn.values:
                    said.append(f"{row.label}{f' {group}' if group else ''} {drawn.values[row.key].text}")
            yield f"{drawn.title}, in {drawn.unit}, {drawn.better} is better: {', '.join(said)}."
    return " ".join([chart.about + ".", *sentences(), *chart.notes])


def style(strokes: tuple[dict[str, str], dict[str, str]]) -> str:
    """The style sheet, with colours of lines by selector for the light and the dark."""
    light, dark = ("".join(f"{selector} {{ stroke: {colour} }}\n" for selector, colour in colours.items()) for colours in strokes)
    return STYLE.replace("@media", f"{light}@media").removesuffix("}\n") + f"{dark}}}\n"


def frame(title: str, described: str, width: int, end: float, body: list[str],
          strokes: tuple[dict[str, str], dict[str, str]] = ({}, {})) -> str:
    """The whole picture; `end` is where the last line of text stands."""
    height = math.ceil(end + 10)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" role="img" aria-labelledby="title description">',
        f'<title id="title">{escape(title)}</title>', f'<desc id="description">{escape(described)}</desc>',
        f"<style>{style(strokes)}</style>", f'<rect width="{width}" height="{height}" class="ground"/>', *body, "</svg>\n"])


def draw(chart: Chart) -> str:
    where, end, headings = positions(chart)
    label = max(text_width(content, 12) for row in chart.rows for content in (row.label, row.group)) + MARGIN + 10
    width = (chart.width - label - MARGIN - COLUMN_GAP * (len(chart.columns) - 1)) / len(chart.columns)
    body = [text(MARGIN, 22, chart.title, 15, weight="bold"), text(MARGIN, 40, chart.about, 11, style="soft")]
    body += [text(MARGIN, y, content, 12, style="soft") for y, content in headings]
    body += [text(label - 8, where[row.key] + BAR * 0.72, row.label, 12, "end") for row in chart.rows]
    for number, drawn in enumerate(chart.columns):
        body += column(chart, drawn, label + number * (width + COLUMN_GAP), width)
    y = end + AXIS
    if chart.legend:
        y += 14
        body += legend(chart.legend, y)
        y += 6
    for note in chart.notes:
        y += 15
        body.append(text(MARGIN, y, note, 11, style="soft"))
    return frame(chart.title, description(chart), chart.width, y, body)
