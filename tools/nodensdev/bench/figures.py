# SPDX-License-Identifier: Apache-2.0
"""From raw times to figures: medians, and how many times the bare engine's cost a runtime takes."""
import statistics
from dataclasses import dataclass
from typing import Any

from .guest.subjects import START, STEPS

ENGINE = "engine"
END = STEPS[4:]
# A runtime may do in one call what another does in the next (create or start, stop or remove): only the sums can be compared.
SUMS = {
    "container start (Create + Start)": ("CreateContainer", "StartContainer"),
    "container end (Stop + Remove)": ("StopContainer", "RemoveContainer"),
    "sandbox end (Stop + Remove)": ("StopPodSandbox", "RemovePodSandbox"),
    "pod start in all": START,
    "pod end in all": END,
}
COMPARED = {"RunPodSandbox", "ExecSync"}


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure per subject."""

    title: str
    unit: str
    values: dict[str, float]
    compared: bool = True

    def ratio(self, subject: str) -> float | None:
        base = self.values.get(ENGINE)
        value = self.values.get(subject)
        return value / base if self.compared and base and value is not None else None


def subjects_of(data: dict[str, Any]) -> list[str]:
    first = next(iter(mode for name, mode in data["results"].items() if name != "pull"))
    return list(first)


def modes_of(data: dict[str, Any]) -> list[str]:
    return [name for name in data["results"] if name != "pull"]


def sums(serial: dict[str, list[float]], steps: tuple[str, ...]) -> float:
    """The median over pods of the sum of their steps."""
    return statistics.median(map(sum, zip(*(serial[step] for step in steps), strict=True)))


def time_rows(mode: dict[str, Any]) -> list[Row]:
    serial = {name: found["serial"] for name, found in mode.items()}
    rows = [Row(step, "ms", {name: statistics.median(times[step]) for name, times in serial.items()}, step in COMPARED)
            for step in STEPS]
    return rows + [Row(title, "ms", {name: sums(times, steps) for name, times in serial.items()}) for title, steps in SUMS.items()]


def medians(mode: dict[str, Any], part: str) -> dict[str, float]:
    """Of the rounds in which pods were started or ended at once."""
    return {name: statistics.median(found["parallel"][part]) for name, found in mode.items()}


def other_rows(mode: dict[str, Any], pods: int) -> list[Row]:
    rows = [
        Row("pods started in parallel, each", "ms", medians(mode, "up_ms")),
        Row("pods ended in parallel, each", "ms", medians(mode, "down_ms")),
        Row("lines in the host's mount table, per pod", "",
            {name: statistics.median(found["mount_lines"]) for name, found in mode.items()}),
    ]
    kept = {name: found["memory"] for name, found in mode.items() if "memory" in found}
    rows.append(Row("daemon's memory (PSS)", "MB", {name: usage["daemon_kb"] / 1024 for name, usage in kept.items()}))
    rows.append(Row("memory of per-pod processes, each pod", "MB",
                    {name: usage["pods_kb"] / 1024 / pods for name, usage in kept.items()}))
    total = {name: (usage["daemon_kb"] + usage["pods_kb"]) / 1024 for name, usage in kept.items()}
    rows.append(Row(f"memory of all but the workload, {pods} pods", "MB", total))
    restarts = {name: found["restart_ms"] for name, found in mode.items() if "restart_ms" in found}
    rows.append(Row(f"daemon restart with {pods} pods", "ms", restarts))
    return rows


def rows_of(data: dict[str, Any], mode: str) -> list[Row]:
    found = data["results"][mode]
    return time_rows(found) + other_rows(found, data["pods"])


def pull_row(data: dict[str, Any]) -> Row:
    pulls = data["results"]["pull"]
    return Row("pull of a 64 MiB image", "ms", {name: statistics.median(times) for name, times in pulls.items()})


def ratios(data: dict[str, Any]) -> dict[str, float]:
    """Every ratio of a run by a name: what two runs must agree in."""
    found = {}
    rows = [(mode, row) for mode in modes_of(data) for row in rows_of(data, mode)] + [("pull", pull_row(data))]
    for mode, row in rows:
        for subject in row.values:
            ratio = row.ratio(subject)
            if subject != ENGINE and ratio is not None and row.unit == "ms":
                found[f"{mode}/{subject}/{row.title}"] = ratio
    return found


def disagreements(first: dict[str, float], second: dict[str, float], limit: float) -> list[str]:
    """Ratios that differ by more than the limit, as text."""
    found = []
    for name in first.keys() & second.keys():
        difference = abs(first[name] - second[name]) / min(first[name], second[name])
        if difference > limit:
            found.append(f"{name}: {first[name]:.2f} and {second[name]:.2f} ({difference:.0%} apart)")
    return sorted(found)
