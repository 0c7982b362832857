# SPDX-License-Identifier: Apache-2.0
"""Line charts as SVG: one measure per column over a shared kind of number, such as the number of pods.

Colours, axes and the texts for screen readers are those of chart.py."""
from collections.abc import Iterable
from dataclasses import dataclass, field

from .chart import AXIS, COLUMN_GAP, COLUMN_HEAD, HEAD, MARGIN, Value, escape, frame, legend, text, text_width, tick_text, ticks

HEIGHT = 170        # of the area of a column
POINT = 3.2
CLOSEST = 14        # pixels between the lines of two labels
LIGHT = {".base-line": "#98a3ab", ".other-line": "#c98a3c", ".ours-line": "#1f6f9f"}
DARK = {".base-line": "#737f88", ".other-line": "#d79a4c", ".ours-line": "#4ea3d8"}


@dataclass(frozen=True)
class Line:
    label: str
    colour: str                     # ours, other or base
    values: dict[float, Value]      # by the number on the horizontal axis


@dataclass(frozen=True)
class Column:
    title: str
    unit: str
    better: str                     # "lower" or "higher"
    lines: list[Line]


@dataclass(frozen=True)
class Plot:
    title: str
    about: str                      # a line below the title
    over: str                       # what the horizontal axis counts: "pods"
    columns: list[Column]
    width: int = 860
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Area:
    """Where the numbers of a column are."""

    left: float
    across: float                   # pixels per unit
    up: float

    @property
    def bottom(self) -> float:
        return HEAD + COLUMN_HEAD + HEIGHT

    def x(self, number: float) -> float:
        return self.left + number * self.across

    def y(self, number: float) -> float:
        return self.bottom - number * self.up


def grid(area: Area, most_x: float, most_y: float, over: str) -> list[str]:
    found, right = [], area.x(most_x)
    for tick in ticks(most_y):
        y = area.y(tick)
        found.append(f'<line x1="{area.left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" class="grid"/>')
        found.append(text(area.left - 5, y + 3.5, tick_text(tick), 10, "end", "soft"))
    for tick in ticks(most_x):
        x = area.x(tick)
        found.append(f'<line x1="{x:.1f}" y1="{area.bottom:.1f}" x2="{x:.1f}" y2="{area.bottom + 4:.1f}" class="grid"/>')
        found.append(text(x, area.bottom + 15, tick_text(tick), 10, "middle", "soft"))
    return [*found, text(right + 7, area.bottom + 15, over, 10, style="soft")]


def curve(area: Area, drawn: Line, column: Column, over: str) -> list[str]:
    places = [(area.x(number), area.y(value.number)) for number, value in drawn.values.items()]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    found = [f'<polyline points="{points}" fill="none" stroke-width="2" class="{drawn.colour}-line"/>']
    for (x, y), (number, value) in zip(places, drawn.values.items(), strict=True):
        said = f"{drawn.label}, {tick_text(number)} {over}: {value.text} {column.unit}"
        found.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{POINT}" class="{drawn.colour}"><title>{escape(said)}</title></circle>')
    return found


def last_values(area: Area, column: Column) -> list[str]:
    """The values at the right ends, from the top; a label that would cover the one above moves down."""
    ends = sorted((area.y(value.number), number, value.text) for line in column.lines for number, value in [list(line.values.items())[-1]])
    found, above = [], -float(CLOSEST)
    for y, number, content in ends:
        above = max(y, above + CLOSEST)
        found.append(text(area.x(number) + 7, above + 4, content, 12, style="value"))
    return found


def draw_column(drawn: Column, left: float, width: float, over: str) -> list[str]:
    values = [value for line in drawn.lines for value in line.values.values()]
    most_x, most_y = max(number for line in drawn.lines for number in line.values), max(value.number for value in values)
    axis = max(text_width(tick_text(tick), 10) for tick in ticks(most_y)) + 6
    reserve = max(*(text_width(value.text, 12) for value in values), text_width(over, 10)) + 10
    area = Area(left + axis, (width - axis - reserve) / most_x, HEIGHT / most_y)
    found = [text(left, HEAD + 12, drawn.title, 12, weight="bold"),
             text(left, HEAD + 28, f"{drawn.unit}; {drawn.better} is better", 11, style="soft"), *grid(area, most_x, most_y, over)]
    for line in drawn.lines:
        found += curve(area, line, drawn, over)
    return [*found, *last_values(area, drawn)]


def description(plot: Plot) -> str:
    """All figures in words."""
    def sentences() -> Iterable[str]:
        for drawn in plot.columns:
            said = [f"{line.label} {', '.join(f'{value.text} with {tick_text(number)}' for number, value in line.values.items())}"
                    for line in drawn.lines]
            yield f"{drawn.title}, in {drawn.unit}, {drawn.better} is better, by the number of {plot.over}: {'; '.join(said)}."
    return " ".join([plot.about + ".", *sentences(), *plot.notes])


def draw(plot: Plot) -> str:
    width = (plot.width - 2 * MARGIN - COLUMN_GAP * (len(plot.columns) - 1)) / len(plot.columns)
    body = [text(MARGIN, 22, plot.title, 15, weight="bold"), text(MARGIN, 40, plot.about, 11, style="soft")]
    for number, drawn in enumerate(plot.columns):
        body += draw_column(drawn, MARGIN + number * (width + COLUMN_GAP), width, plot.over)
    y = HEAD + COLUMN_HEAD + HEIGHT + AXIS + 16.0
    body += legend([(line.colour, line.label) for line in plot.columns[0].lines], y)
    for note in plot.notes:
        y += 16
        body.append(text(MARGIN, y, note, 11, style="soft"))
    return frame(plot.title, description(plot), plot.width, y, body, (LIGHT, DARK))
