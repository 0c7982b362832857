# SPDX-License-Identifier: Apache-2.0
"""From raw samples to figures: medians, and ratios of a runtime's cost to the bare engine's."""
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .guest.subjects import START, STEPS

ENGINE = "engine"
END = STEPS[4:]
# A runtime may do in one call what another does in the next (create or start, stop or remove): only
# the sums can be compared.
SUMS = {
    "container start (Create + Start)": ("CreateContainer", "StartContainer"),
    "container end (Stop + Remove)": ("StopContainer", "RemoveContainer"),
    "sandbox end (Stop + Remove)": ("StopPodSandbox", "RemovePodSandbox"),
    "pod start in all": START,
    "pod end in all": END,
}
COMPARED = {"RunPodSandbox", "ExecSync"}
APART = ("pull", "pair")        # what is no mode in a run's results


@dataclass(frozen=True)
class Row:
    """One line of the table: samples per subject.

    The n-th samples of all subjects come from the same turn.
    """

    title: str
    unit: str
    samples: dict[str, list[float]]
    compared: bool = True
    average: Callable[[list[float]], float] = statistics.median

    @property
    def values(self) -> dict[str, float]:
        return {name: self.average(found) for name, found in self.samples.items() if found}

    def ratio(self, subject: str) -> float | None:
        """Ratio to the bare engine's cost, turn by turn: a turn's halves see the same load."""
        base, own = self.samples.get(ENGINE), self.samples.get(subject)
        if not self.compared or not base or not own:
            return None
        return middle_mean([value / floor for floor, value in zip(base, own, strict=True)])


def middle_mean(values: list[float]) -> float:
    """The mean of the middle half of the values.

    It is steadier than a median for values in two clusters, and as robust against outliers.
    """
    ordered = sorted(values)
    cut = len(ordered) // 4
    return statistics.mean(ordered[cut:len(ordered) - cut])


def subjects_of(data: dict[str, Any]) -> list[str]:
    first = next(iter(mode for name, mode in data["results"].items() if name not in APART))
    return list(first)


def modes_of(data: dict[str, Any]) -> list[str]:
    return [name for name in data["results"] if name not in APART]


def sums(serial: dict[str, list[float]], steps: tuple[str, ...]) -> list[float]:
    """The sum of some steps, pod by pod."""
    return [sum(times) for times in zip(*(serial[step] for step in steps), strict=True)]


def time_rows(mode: dict[str, Any]) -> list[Row]:
    serial = {name: found["serial"] for name, found in mode.items()}
    rows = [Row(step, "ms", {name: times[step] for name, times in serial.items()}, step in COMPARED) for step in STEPS]
    rows += [Row(title, "ms", {name: sums(times, steps) for name, times in serial.items()}) for title, steps in SUMS.items()]
    return rows + [Row(f"idle again after a pod's {part}, mean", "ms", {name: found["left"][part] for name, found in mode.items()},
                       compared=False, average=statistics.mean) for part in ("start", "end")]


def other_rows(mode: dict[str, Any], pods: int) -> list[Row]:
    def memory(size: Callable[[dict[str, Any]], float]) -> dict[str, list[float]]:
        return {name: [size(usage) / 1024 for usage in found["memory"]] for name, found in mode.items()}

    return [
        Row("pods started in parallel, each", "ms", {name: found["parallel"]["up_ms"] for name, found in mode.items()}),
        Row("pods ended in parallel, each", "ms", {name: found["parallel"]["down_ms"] for name, found in mode.items()}),
        Row("lines in the host's mount table, per pod", "", {name: found["mount_lines"] for name, found in mode.items()}),
        Row("daemon's memory (PSS)", "MB", memory(lambda usage: usage["daemon_kb"])),
        Row("memory of per-pod processes, each pod", "MB", memory(lambda usage: usage["pods_kb"] / pods)),
        Row(f"memory of all but the workload, {pods} pods", "MB", memory(lambda usage: usage["daemon_kb"] + usage["pods_kb"])),
        Row(f"daemon restart with {pods} pods", "ms", {name: found["restart_ms"] for name, found in mode.items()}),
    ]


def rows_of(data: dict[str, Any], mode: str) -> list[Row]:
    found = data["results"][mode]
    return time_rows(found) + other_rows(found, data["pods"])


def pull_row(data: dict[str, Any]) -> Row:
    return Row("pull of a 64 MiB image", "ms", data["results"]["pull"])


def userns_cost(data: dict[str, Any]) -> dict[str, float]:
    """By subject: start time of a pod with a user namespace as a ratio to one without, in pairs."""
    return {name: middle_mean([on / off for on, off in zip(found["on"], found["off"], strict=True)])
            for name, found in data["results"].get("pair", {}).items()}


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
