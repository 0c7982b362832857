# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench growth`: time, memory and restart on a node that fills up with pods, nodens-cri beside containerd."""
import json
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import build, registry
from ..command import Failure
from ..env import chroot, deps, goprograms
from ..project import BUILD, commit
from . import table

RESULTS = BUILD / "bench"
COUNTS = (1, 10, 100, 300, 1000, 2000)
KINDS = ("containerd", "nodens-cri")
HEADING = "Growth with the number of pods"
PICTURE = "![Time of one more pod, memory and restart over the number of pods on the node](benchmarks-growth.svg)"
MEASURES = ("one more pod (ms)", "memory (MB)", "restart (ms)", "CPU when idle (ms a minute)")
LISTED = (100, 1000)    # pods, each with two containers

METHOD = """## {heading}
*From the newest run of `tools/dev bench growth`: {date} UTC, commit {commit}, containerd {containerd}; {rounds} in turns.*

- Both runtimes run natively on the host ({cpus} CPUs, Linux {kernel}), as release builds, with the same crun; only one of them has pods at
  a time.
  The pods have a user namespace and two busybox containers each; their network is a pair of veth devices per pod (the plugin ptp).
  Their addresses come from a counter: the plugin host-local reads the files of all addresses for each pod, whatever the runtime.
- containerd ends at 300 pods: its restart takes 0.1 s per pod, and all pods of a node are started anew for each runtime.
- *One more pod*: from RunPodSandbox until its container runs, lower quartile of {probes} pods, which are removed again: other work of the
  host makes pods slower, never faster.
- *Memory*: the proportional set size of the daemon and of the processes that it leaves running per pod, without the workload.
- *CPU when idle*: of the same processes, while nothing is asked for.
- *Restart*: from the start of the daemon until all pods and containers are listed as before; it is restarted once with each number of
  pods, after the other measurements.
- Load average of the host at the end: {load:.1f}, with the benchmark itself.
  Only the shape of a curve and ratios between columns are meaningful, not milliseconds.
"""

GROWS = """CPU time of one more pod, start and end, by program (ms; `perf` on the host, 40 pods each, addresses by host-local):

| program | 10 pods | 300 pods | 1,000 pods | 1,000 pods, crun in the host's mount namespace |
|---|---:|---:|---:|---:|
| crun | 13.9 | 14.3 | 18.8 | 93.3 |
| nodens-cri and its workers | 36.7 | 35.5 | 44.0 | 38.5 |
| nodens-mon | 3.4 | 2.9 | 2.9 | 9.2 |
| the plugin ptp | 11.9 | 15.2 | 17.6 | 16.6 |
| the plugin host-local | 8.0 | 16.1 | 28.6 | 29.7 |

In the host's mount namespace crun copies all mounts, reads their table and unmounts the copies; that was most of the growth.
Two nodes with 10 and with 1,000 pods, measured in turns on one busy machine: one more pod takes 1.12 times as long with 1,000 (lower
quartiles of 40 pods each, addresses by a counter).
What is left:

- host-local reads the files of all addresses.
- crun enables the controllers of the parent cgroups again for each container, and the kernel visits all cgroups below them.
- Each child of nodens-cri inherits and closes one descriptor per container of the node.
- A lookup in /proc/sys passes the entries of all network namespaces.
"""


def run(rounds: int) -> dict[str, Any]:
    """The raw figures, with where they come from."""
    deps.ensure()
    registry.storage.filled()
    for name in ("containerd", "registry"):
        goprograms.ensure(name)
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / "growth-raw.json"
    target.unlink(missing_ok=True)
    with chroot.prepared(chroot.Chroot(env={"NODENS_VARIANT": "release"})) as inside:
        build.ensure(inside, "release")
        alone = replace(inside, chroot=replace(inside.chroot, new_netns=True))
        words = ["python3", "-B", "tests/component/cri-resilience/growth_bench.py", str(rounds), ",".join(map(str, COUNTS)),
                 f"build/bench/{target.name}"]
        code = alone.run(["sh", "-c", 'ip link set lo up; exec "$@"', "sh", *words])
    if code != 0 or not target.exists():
        raise Failure(f"the bench of growth ended with {code}")
    measured = json.loads(target.read_text())
    target.unlink()
    return {"commit": commit(), "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "rounds": rounds, "cpus": os.cpu_count(),
            "kernel": os.uname().release.split("-")[0], "load": os.getloadavg()[0], "results": measured,
            "containerd": goprograms.pinned_version("containerd", "github.com/containerd/containerd/v2")}


def save(data: dict[str, Any]) -> Path:
    path = RESULTS / f"growth-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    return path


def newest() -> dict[str, Any] | None:
    found = sorted(RESULTS.glob("growth-2*.json"))
    return json.loads(found[-1].read_text()) if found else None


def values(stages: list[dict[str, Any]]) -> list[float]:
    """Of one runtime with one number of pods, over the rounds: the measures of the table."""
    probes = [sample for stage in stages for sample in stage["one_more_pod_ms"]]
    memory = [(stage["daemon_kb"] + stage["pods_kb"]) * 1024 / 1e6 for stage in stages]
    restarts = [stage["restart_s"] * 1000 for stage in stages]
    idle = [stage["idle_cpu_ms"] for stage in stages]
    return [statistics.quantiles(probes, n=4)[0], statistics.median(memory), statistics.median(restarts), statistics.median(idle)]


def cell(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def stages(data: dict[str, Any], kind: str, pods: int) -> list[dict[str, Any]]:
    """Of one runtime with one number of pods, one of each round; none if it was not measured with so many."""
    return [stage for turn in data["results"][kind] for stage in turn if stage["pods"] == pods]


def counts(data: dict[str, Any]) -> list[int]:
    return sorted({stage["pods"] for kind in KINDS for turn in data["results"][kind] for stage in turn})


def rows(data: dict[str, Any]) -> list[list[str]]:
    lines = [["pods", *(f"{kind}: {measure}" for measure in MEASURES for kind in KINDS)]]
    for pods in counts(data):
        found = {kind: [cell(value) for value in values(stages(data, kind, pods))] for kind in KINDS if stages(data, kind, pods)}
        lines.append([f"{pods:,}", *(found[kind][measure] if kind in found else "-" for measure in range(len(MEASURES)) for kind in KINDS)])
    return lines


def list_rows(data: dict[str, Any]) -> list[list[str]]:
    """How long a client waits for all of a node."""
    chosen = [pods for pods in LISTED if pods in counts(data)]
    names = [name for pods in chosen for kind in KINDS for stage in stages(data, kind, pods) for name in stage["asked_ms"]]
    lines = [["request (ms)", *(f"{kind}, {2 * pods:,} containers" for pods in chosen for kind in KINDS)]]
    for name in dict.fromkeys(names):
        found = [[stage["asked_ms"][name] for stage in stages(data, kind, pods)] for pods in chosen for kind in KINDS]
        lines.append([name, *(cell(statistics.median(times)) if times else "-" for times in found)])
    return lines


def ratio(data: dict[str, Any], few: int, many: int) -> float | None:
    """One more pod among many, divided by one among few."""
    found = [values(stages(data, "nodens-cri", pods))[0] for pods in (few, many) if stages(data, "nodens-cri", pods)]
    return found[1] / found[0] if len(found) == 2 else None


def section(data: dict[str, Any]) -> str:
    """For docs/benchmarks.md."""
    stage = data["results"][KINDS[0]][0][0]
    rounds = "1 round" if data["rounds"] == 1 else f"{data['rounds']} rounds"
    facts = {name: data[name] for name in ("date", "commit", "containerd", "cpus", "kernel", "load")}
    head = METHOD.format(heading=HEADING, rounds=rounds, probes=len(stage["one_more_pod_ms"]) * data["rounds"], **facts)
    grown = ratio(data, 10, 1000)
    said = f"With nodens-cri one more pod on a node with 1,000 pods takes {grown:.2f} times as long as on one with 10.\n\n" if grown else ""
    return f"{head}\n{PICTURE}\n\n{said}{table.as_markdown(rows(data))}\n\n{table.as_markdown(list_rows(data))}\n\n{GROWS}"


def aligned(lines: list[list[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True)) for line in lines)


def as_text(data: dict[str, Any]) -> str:
    return f"{aligned(rows(data))}\n\n{aligned(list_rows(data))}"
