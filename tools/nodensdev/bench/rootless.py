# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench rootless`: ports, egress, memory and starts of nodens-rootless.

They are measured beside RootlessKit's drivers, bare splice and no proxy at all.
"""
import json
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import build
from ..command import Failure
from ..env import chroot, debpackage, goprograms, root
from ..project import BUILD, TOP, commit
from . import pictures, rootless_node, table

RESULTS = BUILD / "bench"
DOCUMENT = TOP / "docs" / "benchmarks-rootless.md"
OURS, BUILTIN, SPLICE = "nodens, pasta", "RootlessKit, builtin", "bare splice"

METHOD = """# Benchmarks of nodens-rootless

*Written by `tools/dev bench rootless`; do not edit.*

## Method
- The benchmark runs natively on one host ({cpus} CPUs, Linux {kernel}), with the highest priority, as a user without capabilities.
  Two network namespaces represent the host and its router.
  RootlessKit {rootlesskit} is built from its Go module; slirp4netns and pasta are those of Debian 13, *newer pasta* is passt
  {newer_passt} of {newer_suite}.
  The MTU is 65520.
- All variants run at the same time and take turns, {rounds} rounds in rotating order; results are medians over the rounds.
  Ratios are computed turn by turn, for incoming streams over all rows of nodens.
  Only ratios between rows are meaningful: client, forwarder and server share the host's {cpus} CPUs.
  The rows of nodens have the same forwarder: their differences for incoming streams show the error of one run.
- *In*: one TCP stream of {stream_seconds} s, {streams} times a round, from a client on the host through a published port to a server
  in the node.
  *CPU*: CPU time of forwarder and init (RootlessKit: all of its processes) per Gbit.
  *Request*: 10 bytes in both directions on an open connection, {burst} on each variant in turn.
  *Connection*: from `connect()` to the first byte, one after the other.
  *Out*: one stream of {seconds} s from the node to the router, through the variant's network, not its ports.
  *Out, {far_ms} ms*: the same for twice the time over a link with a round-trip time of {far_ms} ms, which a Python program delays:
  it forwards at most what the row *direct* shows.
  *Memory*: PSS of forwarder and init after {connections:,} connections (RootlessKit: all of its processes).
  *Start*: from the launcher's exec until a program inside has made a TCP connection to the router.
- Debian 13's pasta stalls streams out of a node, with nodens and with RootlessKit, at all distances.
  It announces a larger window to the node than its socket on the host has room for, drops what does not fit, and sends two duplicate
  acknowledgements at most; the sender needs three, and waits for its retransmission timer instead.
  The newer pasta announces the room in its socket, except to destinations that reply within 10 us, which are on the same host, as
  the router here: there it stalls, too.
  Plain pasta, without nodens, behaves the same, with MTUs from 1500 to 65520.
  Senders with small buffers do not stall, but are slow over distances, and each pod has its own buffer sizes: nodens does not set them.
- *Direct* is the same without a node, over loopback; *bare splice* is a proxy of two threads that only splice.
  nodens preserves the client's address, with the rules and the connection tracking that this needs; whether RootlessKit's drivers
  did was not checked.
"""

COLUMNS = (("gbit", "in (Gbit/s)", "{:.1f}"), ("cpu_per_gbit", "CPU (s/Gbit)", "{:.3f}"), ("request_p50_us", "request p50 (us)", "{:.0f}"),
           ("request_p99_us", "p99 (us)", "{:.0f}"), ("connection_p50_us", "connection p50 (us)", "{:.0f}"),
           ("connection_p99_us", "p99 (us)", "{:.0f}"),
           ("egress_gbit", "out (Gbit/s)", "{:.2f}"), ("far_gbit", "out, 10 ms (Gbit/s)", "{:.2f}"),
           ("pss_mb", "memory (MB)", "{:.1f}"), ("start_ms", "start (ms)", "{:.0f}"))


PODS_METHOD = """
Each node has two pods: network namespaces on the bridge of the CNI plugin, with the configuration that `up --join` writes (MTU {mtu}).
A runtime has no part in their traffic.
*Rootful node* is the same bridge on the host itself, with its port by DNAT.
*RootlessKit and containerd* is RootlessKit with slirp4netns and the port driver builtin, as its documentation recommends, and containerd.
*World* is the router, another network namespace of the same host.
One stream of {seconds} s in each direction; CPU is that of the helper, the forwarder and init (RootlessKit: all of its processes) per Gbit.
"""
KUBERNETES_METHOD = """
Two guests with the same kernel (User-mode Linux), kubelet and nodens-cri run at once and take turns, {pods} pods each time; one of them is a rootless
node.
*Start* is the kubelet's `kubelet_pod_start_duration_seconds`, with the image at hand.
*Memory* is the PSS of a joined node without pods.
"""
MEMORY_NOTE = """
Of the idle memory, 16 MB are pasta's static packet buffers and stack, and 7.5 MB the controller, mostly pages of TLS libraries.
"""
POD_COLUMNS = (("pods_gbit", "pod to pod (Gbit/s)", "{:.1f}"), ("out_gbit", "pod to world (Gbit/s)", "{:.2f}"),
               ("out_cpu_per_gbit", "CPU (s/Gbit)", "{:.3f}"), ("in_gbit", "world to pod (Gbit/s)", "{:.1f}"),
               ("in_cpu_per_gbit", "CPU (s/Gbit)", "{:.3f}"))


@dataclass(frozen=True)
class Aim:
    """A figure that was promised."""

    name: str
    value: float
    most: float | None = None
    least: float | None = None
    unit: str = ""

    @property
    def reached(self) -> bool:
        return self.value <= self.most if self.most is not None else self.least is not None and self.value >= self.least


def measure(program: str, rounds: int) -> dict[str, Any]:
    """The figures of a program that runs natively."""
    target = RESULTS / "rootless-raw.json"
    target.unlink(missing_ok=True)
    with chroot.prepared(chroot.Chroot(env={"NODENS_VARIANT": "release"})) as inside:
        build.ensure(inside, "release")
        code = inside.run(["python3", "-B", f"tests/component/rootless/{program}", "--rounds", str(rounds), "--json",
                           f"build/bench/{target.name}"])
    if code != 0 or not target.exists():
        raise Failure(f"{program}, a part of the bench of rootless nodes, ended with {code}")
    found: dict[str, Any] = json.loads(target.read_text())
    target.unlink()
    return found


def run(rounds: int, pods: bool = True) -> dict[str, Any]:
    """The raw figures, with where they come from: of the launcher, and of pods and nodes of a cluster."""
    for name in ("rootlesskit", "containerd"):
        goprograms.ensure(name)
    root.ensure("lxc")
    debpackage.unpacked(*debpackage.PASST)
    RESULTS.mkdir(parents=True, exist_ok=True)
    measured = measure("bench.py", rounds)
    if pods:
        measured |= {"pods": measure("bench_pods.py", rounds), "kubernetes": rootless_node.run()}
    return {"commit": commit(), "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "rounds": rounds, "cpus": os.cpu_count(),
            "load": os.getloadavg()[0],
            "kernel": os.uname().release.split("-")[0],
            "newer_passt": debpackage.PASST[1], "newer_suite": debpackage.PASST[2],
            "rootlesskit": goprograms.pinned_version("rootlesskit", "github.com/rootless-containers/rootlesskit/v3"), **measured}


def save(data: dict[str, Any]) -> Path:
    path = RESULTS / f"rootless-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    return path


def value(data: dict[str, Any], way: str, name: str) -> float | None:
    row = data["ways"].get(way, {})
    if name == "start_ms":
        return statistics.median(row["start_ms"]) if row.get("start_ms") else None
    if name in row:
        return float(row[name])
    found = [turn[name] for turn in row.get("rounds", []) if name in turn]
    return statistics.median(found) if found else None


def ratio(data: dict[str, Any], name: str, other: str) -> float:
    """Of our ways, which have one and the same forwarder, to another, turn by turn."""
    theirs = data["ways"][other]["rounds"]
    ours = [row["rounds"] for way, row in data["ways"].items() if way.startswith("nodens")]
    return statistics.median(one[name] / two[name] for rounds in ours for one, two in zip(rounds, theirs, strict=False))


def tail_ratio(data: dict[str, Any], name: str, other: str) -> float:
    """The same for what is counted over all rounds."""
    theirs = value(data, other, name)
    assert theirs
    return statistics.median(row[name] for way, row in data["ways"].items() if way.startswith("nodens")) / theirs


def simple_ratio(data: dict[str, Any], name: str, way: str, other: str) -> float:
    ours, theirs = value(data, way, name), value(data, other, name)
    assert ours is not None and theirs
    return ours / theirs


def aims(data: dict[str, Any]) -> list[Aim]:
    return [Aim("throughput, x RootlessKit builtin", ratio(data, "gbit", BUILTIN), least=1.0),
            Aim("throughput, x bare splice", ratio(data, "gbit", SPLICE), least=0.85),
            Aim("p99 of a small request, x RootlessKit builtin", tail_ratio(data, "request_p99_us", BUILTIN), most=1.0),
            Aim("CPU per Gbit, x RootlessKit builtin", ratio(data, "cpu_per_gbit", BUILTIN), most=1.0),
            Aim("memory of init and forwarder", value(data, OURS, "pss_mb") or 0.0, most=5.0, unit=" MB"),
            Aim("start with pasta, x RootlessKit's", simple_ratio(data, "start_ms", OURS, "RootlessKit, pasta"), most=0.5),
            Aim("start with slirp4netns, x RootlessKit's",
                simple_ratio(data, "start_ms", "nodens, slirp4netns", "RootlessKit, slirp4netns"), most=0.5)]


def node_aims(data: dict[str, Any]) -> list[Aim]:
    """The same for a node of a cluster."""
    memory = data["kubernetes"]["memory"]
    idle = memory["own"] + memory.get("helper", 0.0)
    return [Aim("start of a pod, x the rootful node's", data["kubernetes"]["start_ratio"], most=1.1),
            Aim("idle memory of our own processes and the network helper", idle, most=12.0, unit=" MB")]


def lines(data: dict[str, Any]) -> list[list[str]]:
    found = [["", *(title for _, title, _ in COLUMNS)]]
    for way in data["ways"]:
        numbers = [value(data, way, name) for name, _, _ in COLUMNS]
        found.append([way, *("-" if number is None else form.format(number) for number,
                             (_, _, form) in zip(numbers, COLUMNS, strict=False))])
    return found


def pod_lines(data: dict[str, Any]) -> list[list[str]]:
    """Throughput of pods, by node."""
    found = [["", *(title for _, title, _ in POD_COLUMNS)]]
    for name, rounds in data["pods"]["nodes"].items():
        numbers = [[turn[key] for turn in rounds if key in turn] for key, _, _ in POD_COLUMNS]
        found.append([name, *(form.format(statistics.median(values)) if values else "-"
                              for values, (_, _, form) in zip(numbers, POD_COLUMNS, strict=True))])
    return found


def kubernetes_lines(data: dict[str, Any]) -> list[list[str]]:
    """Start of pods and memory of a node in a cluster."""
    found, starts, memory = [["metric", "result"]], data["kubernetes"]["starts"], data["kubernetes"]["memory"]
    for name in ("rootful", "rootless"):
        found.append([f"start of a pod, {name} node", f"{statistics.median(row[name] for row in starts):.2f} s"])
    found += [[f"memory, {name}", f"{memory[name]:.1f} MB"] for name in sorted(memory)]
    return found


def aim_lines(data: dict[str, Any]) -> list[list[str]]:
    found = [["metric", "result", "goal", "met"]]
    for aim in aims(data) + (node_aims(data) if "kubernetes" in data else []):
        wanted = f"at most {aim.most:g}{aim.unit}" if aim.most is not None else f"at least {aim.least:g}{aim.unit}"
        found.append([aim.name, f"{aim.value:.2f}{aim.unit}", wanted, "yes" if aim.reached else "**no**"])
    return found


def as_text(data: dict[str, Any]) -> str:
    parts = [lines(data), *([pod_lines(data), kubernetes_lines(data)] if "kubernetes" in data else []), aim_lines(data)]
    return "\n\n".join(table.as_markdown(part) for part in parts)


def write_document(data: dict[str, Any]) -> None:
    """The page and its plot."""
    busy = (
        " Other processes used the host meanwhile, at lower priority: turns of one variant differ by a third and more."
        if data["load"] > 3 * data["cpus"]
        else ""
    )
    DOCUMENT.write_text("\n".join([
        METHOD.format(**data),
        f"## Results\n{data['date']} UTC, commit {data['commit']}, load average of the host at its end {data['load']:.1f}.{busy}\n",
        "![Throughput of ports and networks, and start of rootless nodes](benchmarks-rootless.svg)\n", table.as_markdown(lines(data)),
        "\n### Pods\n" + PODS_METHOD.format(**data["pods"]), table.as_markdown(pod_lines(data)),
        "\n### A node in a cluster\n" + KUBERNETES_METHOD.format(**data["kubernetes"]), table.as_markdown(kubernetes_lines(data)),
        "\n### Goals\n",
        table.as_markdown(aim_lines(data)), MEMORY_NOTE]))
    pictures.write(DOCUMENT.name)
