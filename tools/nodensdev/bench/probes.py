# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench probes`: ExecSync and statistics of running containers, by runtime.

All runtimes run in one guest.
"""
import json
import statistics
import time
from pathlib import Path
from typing import Any

from ..project import BUILD
from . import guest_run
from .figures import ENGINE, middle_mean

RESULTS = BUILD / "bench"
THROUGHPUT = BUILD / "throughput.json"
PODS, CONTAINERS = 20, 10
STEPS = ("ExecSync", "ListContainerStats", "ListPodSandboxStats")


def run(runtimes: tuple[str, ...], turns: int, kernel: str) -> dict[str, Any]:
    return guest_run.run(guest_run.Plan(runtimes, PODS, 1, turns, ("on",), kernel, kind="probes", containers=CONTAINERS))


def save(data: dict[str, Any]) -> Path:
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"probes-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    return path


def ratio(data: dict[str, Any], step: str, subject: str, base: str) -> float:
    """Turn by turn, since a turn's two halves saw the same machine."""
    pairs = zip(data["results"][subject][step], data["results"][base][step], strict=True)
    return middle_mean([own / other for own, other in pairs])


def newest() -> dict[str, Any] | None:
    found = sorted(RESULTS.glob("probes-*.json"))
    return json.loads(found[-1].read_text()) if found else None


def section(data: dict[str, Any]) -> str:
    """For docs/benchmarks.md."""
    names = list(data["results"])
    lines = ["## Commands and statistics",
             f"*From the newest run of `tools/dev bench probes`: {data['date']} UTC, commit {data['commit']}.*\n",
             f"{data['pods']} pods in user namespaces with {data['containers']} containers each (the bare engine's have one), in turns, "
             f"{data['rounds']} of each;",
             "medians in milliseconds, ratios turn by turn as above.\n",
             "| | " + " | ".join("bare engine" if name == ENGINE else name for name in names)
             + " | nodens x containerd | engine x containerd |",
             "|---|" + "---:|" * (len(names) + 2)]
    for step in STEPS:
        found = {name: data["results"][name].get(step) for name in names}
        cells = [f"{statistics.median(samples):.1f}" if samples else "-" for samples in found.values()]
        cells += [f"{ratio(data, step, one, 'containerd'):.2f}" if found.get(one) and found.get("containerd") else "-"
                  for one in ("nodens", ENGINE)]
        lines.append(f"| {step} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def throughput_section() -> str | None:
    """What `tools/dev test throughput` measured last, for docs/benchmarks.md."""
    if not THROUGHPUT.is_file():
        return None
    found = json.loads(THROUGHPUT.read_text())
    rates, empty = found["mib_per_s"], found["exec_s"]
    return "\n".join([
        "## kubectl exec",
        f"*From the newest run of `tools/dev test throughput`: {found['date']} UTC. Two clusters, in turns, through API server and "
        f"kubelet.*\n",
        "| | containerd | nodens | nodens x containerd |", "|---|---:|---:|---:|",
        f"| 64 MiB out of a pod (MiB/s) | {rates['containerd']:.1f} | {rates['nodens']:.1f} | {found['ratio']:.2f} |",
        f"| a command that does nothing (ms) | {empty['containerd'] * 1000:.0f} | {empty['nodens'] * 1000:.0f} | "
        f"{empty['nodens'] / empty['containerd']:.2f} |"]) + "\n"


def as_text(data: dict[str, Any]) -> str:
    """A line per step: each subject's median, and its ratios to containerd and the bare engine."""
    lines = [f"{data['pods']} pods in user namespaces with {data['containers']} containers each, {data['rounds']} turns; medians"]
    for step in STEPS:
        found = {name: steps[step] for name, steps in data["results"].items() if steps.get(step)}
        words = [f"{name} {statistics.median(samples):.2f} ms" for name, samples in found.items()]
        words += [f"nodens / {base}: {ratio(data, step, 'nodens', base):.2f}" for base in ("containerd", ENGINE)
                  if {"nodens", base} <= found.keys()]
        lines.append(f"{step}: {', '.join(words)}")
    return "\n".join(lines)
