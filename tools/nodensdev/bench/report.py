# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks.md: the method, and the figures of the newest runs. Written by `tools/dev bench report`, never by hand."""
import json
from pathlib import Path
from typing import Any

from ..command import Failure
from ..project import BUILD, TOP
from . import figures, growth, layers, pictures, probes, pulls, table

RESULTS = BUILD / "bench"
DOCUMENT = TOP / "docs" / "benchmarks.md"

METHOD = """# Benchmarks of nodens-cri

*Written by `tools/dev bench report` from the newest runs of `tools/dev bench cri`; do not edit.*

## Method
- All runtimes run in one guest ({kernel_name}, {cpus} CPU, 4 GiB, Debian 13, ext4 on a disk in memory), booted for the run.
  The guest is pinned to one CPU of its host, with a high priority.
  It contains the runtimes as systemd services, a registry on the guest's loopback, and a CRI client that sends the requests of a
  kubelet, for pods with one busybox container that sleeps.
- *Bare engine*: the same CNI plugins (loopback, bridge, host-local), an overlay mount and `crun create/start/exec/kill/delete`,
  run by a script without a daemon, a store or records.
  It is the lower bound for a runtime that uses these programs.
- Subjects take turns, pod by pod, in rotating order, so that a disturbance of the host affects all of them.
  A turn begins when nothing has run in the guest for 40 ms: on one CPU, the remaining work of a subject would slow down the next one.
  The table has the length of this wait (*idle again*).
  There are {rounds} rounds, each with {pods} new pods of both kinds; the first pod of each subject in a round is not counted.
- Times are medians.
  A ratio is computed turn by turn, between pods that ran under the same conditions, and is the mean of the middle half of these.
  Absolute times vary from run to run; the ratios of two runs must agree within 15 %.
  Runtimes divide the work differently between calls (containerd calls crun in StartContainer only), so some steps have no ratio, but
  their sums have.
{cost}- Memory is the proportional set size of the daemon and of the processes that it leaves running per pod (monitors, shims, pause),
  without the workload.
- *In parallel*: batches of {parallel} pods at once, wall time divided by the number of pods.
  *Restart*: from `systemctl restart` until all pods and containers are listed as before.
  *Pull*: 64 MiB in four gzip layers and a base; for the bare engine curl, checksum and `tar -xz`, one layer after the other.
- Ports, egress and starts of rootless nodes have [their own page](benchmarks-rootless.md).
"""
PICTURES = """![Start and end of a pod with containerd, nodens-cri and the bare engine](benchmarks.svg)

![Memory and restart of the runtimes beside 20 pods](benchmarks-memory.svg)
"""
REPEAT = """## Repeat the measurements
`tools/dev doctor` reports what the host lacks.
The first command also builds Kubernetes, containerd and the images, which takes up to an hour.

<!-- run: none takes an hour -->
```sh
sudo tools/dev bench cri          # 10 minutes in a guest
sudo tools/dev bench growth       # 20 minutes on the host itself
sudo tools/dev bench probes
sudo tools/dev bench images
sudo tools/dev bench layers
sudo tools/dev bench large        # needs 50 GB of disk
sudo tools/dev test throughput
sudo tools/dev bench compare      # after two runs of cri: whether their ratios agree
sudo tools/dev bench report       # writes this page and its pictures
```

Each prints its table and keeps the samples in `build/bench`.
Not measured: guests under KVM, hosts with more than 2 CPUs, the start of pods by a kubelet.
"""
SECTIONS = (growth.HEADING, "Commands and statistics", "kubectl exec", "Pulling a large image", layers.HEADING,
            "Repeat the measurements")
COST = "- *What a user namespace costs*: pods with and without one in turn, one right after the other, each ended before the next.\n"


def results() -> list[Path]:
    return sorted(RESULTS.glob("cri-*.json"))


def newest() -> dict[str, Any]:
    found = results()
    if not found:
        raise Failure("no results in build/bench; `tools/dev bench cri` makes them")
    return json.loads(found[-1].read_text())


def comparable(data: dict[str, Any]) -> dict[str, Any] | None:
    """The run before the newest with the same plan, if there is one."""
    for path in reversed(results()[:-1]):
        other = json.loads(path.read_text())
        same_plan = all(other.get(name) == data[name] for name in ("pods", "parallel", "rounds", "kernel"))
        if same_plan and figures.subjects_of(other) == figures.subjects_of(data):
            return other
    return None


def agreement(data: dict[str, Any]) -> str:
    other = comparable(data)
    if other is None:
        return "No second run with the same plan to compare with."
    first, second = figures.ratios(other), figures.ratios(data)
    apart = {name: abs(first[name] - second[name]) / min(first[name], second[name]) for name in first.keys() & second.keys()}
    worst = max(apart, key=lambda name: apart[name])
    near = sum(value <= 0.15 for value in apart.values())
    return (f"Compared with the run of {other['date']} (commit {other['commit']}): {len(apart)} ratios, {near} within 15 %; "
            f"the furthest apart is {worst} with {apart[worst]:.0%}.")


def method(data: dict[str, Any]) -> str:
    """How the figures were taken; only of those that the run has."""
    machine = data["machine"]
    name = "User-mode Linux" if data["kernel"] == "uml" else "Debian's kernel under QEMU"
    return METHOD.format(kernel_name=f"{name} {machine['kernel']}", cpus=machine["cpus"], parallel=data["parallel"],
                         rounds=data["rounds"], pods=data["pods"], cost=COST if "pair" in data["results"] else "")


def head() -> str:
    """All above the sections: the method, and what `tools/dev bench cri` measured."""
    data = newest()
    text = [method(data)]
    versions = ", ".join(f"{title} {version}" for title, version in data["versions"].items())
    busy = f" Load average of the host before the run: {data['load']}." if "load" in data else ""
    text.append(f"## Results\n{data['date']} UTC, commit {data['commit']}, {data['rounds']} x {data['pods']} pods in "
                f"{data['seconds'] // 60} min; {versions}.{busy}\n{agreement(data)}\n")
    text.append(PICTURES)
    for title, lines in table.tables(data):
        text.append(f"### {title[0].upper()}{title[1:]}\n{table.as_markdown(lines)}\n")
    return "\n".join(text)


def sections() -> dict[str, str]:
    """By heading: what other benchmarks measured here, each with its own newest run."""
    grown, asked, pulled = growth.newest(), probes.newest(), pulls.newest()
    found = [growth.section(grown) if grown else None, probes.section(asked) if asked else None, probes.throughput_section(),
             pulls.section(pulled) if pulled else None, layers.section(), REPEAT]
    return {heading: text for heading, text in zip(SECTIONS, found, strict=True) if text}


def parts_of(page: str) -> dict[str, str]:
    """The sections of a page by heading; "" is all above them."""
    found, heading = {"": ""}, ""
    for line in page.splitlines(keepends=True):
        if line.startswith("## ") and line[3:-1] in SECTIONS:
            heading = line[3:-1]
            found[heading] = ""
        found[heading] += line
    return {heading: text.rstrip("\n") + "\n" for heading, text in found.items()}


def write() -> None:
    """Replaces the parts that were measured here; those of runs elsewhere stay as they are."""
    parts = parts_of(DOCUMENT.read_text()) | ({"": head()} if results() else {}) | sections()
    DOCUMENT.write_text("\n".join(parts[heading] for heading in ("", *SECTIONS) if heading in parts))
    pictures.write(DOCUMENT.name)
