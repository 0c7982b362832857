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
COUNTS = (10, 50, 100, 250)
KINDS = ("containerd", "nodens-cri")
HEADING = "Growth with the number of pods"
PICTURE = "![Time of one more pod, memory and restart over the number of pods on the node](benchmarks-growth.svg)"
MEASURES = ("one more pod (ms)", "memory (MB)", "restart (ms)")

METHOD = """## {heading}
*From the newest run of `tools/dev bench growth`: {date} UTC, commit {commit}, containerd {containerd}; {rounds} in turns.*

- Both runtimes run natively on the host ({cpus} CPUs, Linux {kernel}), as release builds, with the same crun; only one of them has pods at
  a time.
  The pods have a user namespace and two busybox containers each; their network is a pair of veth devices per pod (the plugin ptp).
- *One more pod*: from RunPodSandbox until its container runs, lower quartile of {probes} pods, which are removed again: other work of the
  host makes pods slower, never faster.
- *Memory*: the proportional set size of the daemon and of the processes that it leaves running per pod, without the workload.
- *Restart*: from the start of the daemon until all pods and containers are listed as before; it is restarted once with each number of
  pods, after the other measurements.
- Load average of the host at the end: {load:.1f}, with the benchmark itself.
  Only the shape of a curve and ratios between columns are meaningful, not milliseconds.
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
    return [statistics.quantiles(probes, n=4)[0], statistics.median(memory), statistics.median(restarts)]


def rows(data: dict[str, Any]) -> list[list[str]]:
    lines = [["pods", *(f"{kind}: {measure}" for measure in MEASURES for kind in KINDS)]]
    for number, stage in enumerate(data["results"][KINDS[0]][0]):
        found = {kind: values([stages[number] for stages in data["results"][kind]]) for kind in KINDS}
        cells = [found[kind][measure] for measure in range(len(MEASURES)) for kind in KINDS]
        lines.append([f"{stage['pods']:,}", *(f"{cell:,.0f}" if cell >= 100 else f"{cell:.1f}" for cell in cells)])
    return lines


def section(data: dict[str, Any]) -> str:
    """For docs/benchmarks.md."""
    stage = data["results"][KINDS[0]][0][0]
    rounds = "1 round" if data["rounds"] == 1 else f"{data['rounds']} rounds"
    facts = {name: data[name] for name in ("date", "commit", "containerd", "cpus", "kernel", "load")}
    head = METHOD.format(heading=HEADING, rounds=rounds, probes=len(stage["one_more_pod_ms"]) * data["rounds"], **facts)
    return f"{head}\n{PICTURE}\n\n{table.as_markdown(rows(data))}\n"


def as_text(data: dict[str, Any]) -> str:
    lines = rows(data)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
