# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/, drawn from the tables of the pages beside them: a picture has no figure that its page does not have."""
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..command import Failure
from ..project import TOP
from . import chart, growth, lines
from .chart import Chart, Column, Row, Value

DOCS = TOP / "docs"
Table = dict[str, dict[str, str]]       # cells by row and column


class Page:
    """The tables of a page, by the heading above them; a second table below a heading has the heading and a number."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.tables: dict[str, Table] = {}
        heading, columns = "", list[str]()
        for line in content.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("#"):
                heading = line.lstrip("# ")
            if not line.startswith("|"):
                columns = []
            elif not columns:
                columns, table = cells[1:], self.add(heading)
            elif not set(line) <= set("|-: "):
                table[cells[0]] = dict(zip(columns, cells[1:], strict=True))

    def add(self, heading: str) -> Table:
        number = sum(name == heading or name.startswith(f"{heading} ") for name in self.tables)
        return self.tables.setdefault(f"{heading} {number + 1}" if number else heading, {})

    def cell(self, heading: str, row: str, column: str) -> str:
        try:
            return self.tables[heading][row][column]
        except KeyError as missing:
            raise Failure(f"the page has no row '{row}' with a column '{column}' below '{heading}'") from missing

    @property
    def date(self) -> str:
        """Of the first run that the page names."""
        return date_in(self.content)

    def date_below(self, heading: str) -> str:
        return date_in(self.content.partition(f"# {heading}\n")[2])


def date_in(content: str) -> str:
    found = re.search(r"(\d{4}-\d\d-\d\d) \d\d:\d\d UTC", content)
    if not found:
        raise Failure("the page has no date")
    return found[1]


MODES = {"on": "Pods with a user namespace", "off": "Pods with the host's users"}
SUBJECTS = (("bare engine", "bare engine", "base"), ("containerd", "containerd", "other"), ("nodens", "nodens-cri", "ours"))


def pods_of(page: Page) -> str:
    found = re.search(r", (\d+) x (\d+) pods in ", page.content)
    return f"{int(found[1]) * int(found[2])} pods" if found else "pods"


def pod_times(page: Page) -> Chart:
    """docs/benchmarks.svg"""
    rows = [Row(f"{mode} {name}", label, colour, MODES[mode].replace("Pods ", "") if not number else "")
            for mode in MODES for number, (name, label, colour) in enumerate(SUBJECTS)]

    def column(title: str, row: str) -> Column:
        cells = {f"{mode} {name}": page.cell(heading, row, name) for mode, heading in MODES.items() for name, _, _ in SUBJECTS}
        return Column(title, "milliseconds", "shorter", {key: Value(cell) for key, cell in cells.items()})

    return Chart("Start and end of a pod", f"Medians of {pods_of(page)}, {page.date}. "
                 "Bare engine: crun and the CNI plugins, run by a script without a daemon",
                 rows, [column("Start", "pod start in all (ms)"), column("End", "pod end in all (ms)")])


MEMORY = re.compile(r"memory of all but the workload, (\d+) pods \(MB\)")


def memory(page: Page) -> Chart:
    """docs/benchmarks-memory.svg"""
    heading, subjects = MODES["on"], SUBJECTS[1:]
    total = next((row for row in page.tables[heading] if MEMORY.fullmatch(row)), "")
    found = MEMORY.fullmatch(total)
    if not found:
        raise Failure("the page has no memory of all but the workload")
    pods = found[1]

    def values(row: str) -> dict[str, Value]:
        return {name: Value(page.cell(heading, row, name)) for name, _, _ in subjects}

    def parted(row: str, daemon: str = "") -> dict[str, Value]:
        """The part of the daemon has the first colour, that of the processes per pod the second."""
        return {name: replace(value, part=float(page.cell(heading, daemon, name)) if daemon else 0)
                for name, value in values(row).items()}

    return Chart(f"The runtime beside {pods} pods", f"Pods with a user namespace, {page.date}; memory without that of the workload",
                 [Row(name, label, colour) for name, label, colour in subjects],
                 [Column(f"Memory, {pods} pods", "MB", "shorter", parted(total, "daemon's memory (PSS) (MB)")),
                  Column("Each pod adds", "MB", "shorter", parted("memory of per-pod processes, each pod (MB)")),
                  Column("Restart of the daemon", "milliseconds", "shorter", values(f"daemon restart with {pods} pods (ms)"))],
                 legend=[("other", "containerd"), ("other2", "its shims and pause processes"), ("ours", "nodens-cri"),
                         ("ours2", "its monitors")])


STALLED = 0.1       # Gbit/s, far below all others


def rootless(page: Page) -> Chart:
    """docs/benchmarks-rootless.svg"""
    table = page.tables["Results"]
    colours = {"nodens": "ours", "RootlessKit": "other"}

    def column(title: str, name: str, unit: str, better: str) -> Column:
        cells = {way: cells[name] for way, cells in table.items() if cells[name] != "-"}
        return Column(title, unit, better, {way: Value(cell, mark=" *" if better == "longer" and float(cell) < STALLED else "")
                                            for way, cell in cells.items()})

    columns = [column("Into the node", "in (Gbit/s)", "Gbit/s", "longer"), column("Out of the node", "out (Gbit/s)", "Gbit/s", "longer"),
               column("Start of a node", "start (ms)", "milliseconds", "shorter")]
    notes = ["Into: a stream from a client on the host through a published port. Out: a stream from the node to the router.",
             "Direct: the same over loopback, without a node. Bare splice: a proxy that only copies."]
    if any(value.mark for drawn in columns for value in drawn.values.values()):
        notes.append("* pasta stalls; the section Method of the page describes it.")
    return Chart("Ports, network and start of rootless nodes", f"Medians, {page.date}; all variants share one host",
                 [Row(way, way, colours.get(way.split(",")[0], "base")) for way in table], columns, 900, notes)


def guard(page: Page) -> Chart:
    """docs/guard-benchmarks.svg"""
    heading = "Comparison with other webhooks"
    peers = [("webhook", "Kubernetes' webhook", heading), ("Kyverno", "Kyverno", f"{heading} 2")]
    peers = [peer for peer in peers if peer[2] in page.tables]

    def column(title: str, row: str, unit: str, better: str) -> Column:
        values = {"nodens-guard": Value(page.cell(heading, row, "nodens-guard"))}
        return Column(title, unit, better, values | {name: Value(page.cell(where, row, name)) for name, _, where in peers})

    return Chart("Pod security reviews of admission webhooks", f"One core each, the same reviews, {page.date}",
                 [Row("nodens-guard", "nodens-guard", "ours"), *(Row(name, label, "other") for name, label, _ in peers)],
                 [column("Throughput", "pod security, reviews/s", "reviews a second", "longer"),
                  column("Resident memory, maximum", "resident, maximum (MB)", "MB", "shorter")],
                 notes=["Kyverno has a policy with one rule and a smaller cluster than the guard."] if len(peers) > 1 else [])


def pod_growth(page: Page) -> lines.Plot:
    """docs/benchmarks-growth.svg"""
    table = page.tables[growth.HEADING]
    colours = {"containerd": "other", "nodens-cri": "ours"}

    def column(title: str, measure: str, unit: str) -> lines.Column:
        drawn = [lines.Line(kind, colours[kind], {float(pods.replace(",", "")): Value(cells[f"{kind}: {measure}"])
                                                  for pods, cells in table.items() if cells[f"{kind}: {measure}"] != "-"})
                 for kind in growth.KINDS]
        return lines.Column(title, unit, "lower", drawn)

    about = f"By the number of pods on the node, each with two containers and a user namespace, {page.date_below(growth.HEADING)}"
    titles = ("One more pod", "Memory without the workload", "Restart of the daemon", "CPU time when idle")
    units = ("milliseconds", "MB", "milliseconds", "ms a minute")
    # a page of an earlier run does not have all of them
    measured = {name.partition(": ")[2] for cells in table.values() for name in cells}
    columns = [column(*words) for words in zip(titles, growth.MEASURES, units, strict=True) if words[1] in measured]
    return lines.Plot("The runtime on a node that fills up", about, "pods", columns, 860 if len(columns) < 4 else 1120)


PICTURES: dict[str, tuple[str, Callable[[Page], Chart | lines.Plot]]] = {
    "benchmarks.svg": ("benchmarks.md", pod_times),
    "benchmarks-memory.svg": ("benchmarks.md", memory),
    "benchmarks-growth.svg": ("benchmarks.md", pod_growth),
    "benchmarks-rootless.svg": ("benchmarks-rootless.md", rootless),
    "guard-benchmarks.svg": ("guard-benchmarks.md", guard),
}


def render(name: str) -> str:
    page, make = PICTURES[name]
    made = make(Page((DOCS / page).read_text()))
    return lines.draw(made) if isinstance(made, lines.Plot) else chart.draw(made)


def shown() -> list[str]:
    """The pictures that their pages show; a section that was never measured has none."""
    return [name for name, (page, _) in PICTURES.items() if f"]({name})" in (DOCS / page).read_text()]


def write(*pages: str) -> list[Path]:
    """Draws the pictures of these pages, or all."""
    written = []
    for name in shown():
        if not pages or PICTURES[name][0] in pages:
            (DOCS / name).write_text(render(name))
            written.append(DOCS / name)
    return written
